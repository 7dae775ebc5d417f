import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, unlinkSync } from "node:fs";
// Tests stand outside the floors: what the local cluster uses for its in-process sockets.
import { grpcConnector, grpcListener, inProcessCsi, withSocketFiles } from "@longshore/csi";
import {
  kernelHost,
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  systemClock,
  VirtualClock,
} from "@longshore/runtime";
import { FakeCloud, fakeDriver } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import {
  RegistrationError,
  registrationProbe,
  startNodeDriverRegistrar,
  unsupportedPlatform,
} from "../index.ts";

const never = new AbortController().signal;
const call = { signal: never, timeoutMs: 5_000 };
const kubeletRegistrationPath = "/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock";
const registrationSocket = "/registration/ebs.csi.aws.com-reg.sock";

async function world() {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const csi = inProcessCsi({ clock });
  const host = new SimulatedHost();
  await host.makeDirectory("/registration");
  const start = () =>
    startNodeDriverRegistrar(
      {
        ...env,
        csi: csi.connect("/csi.sock"),
        connector: csi,
        listener: withSocketFiles(csi, host),
        host,
      },
      { kubeletRegistrationPath },
    );
  return { clock, csi, host, start };
}

describe("the node-driver-registrar", () => {
  it("waits for its driver, then registers it with the kubelet until it is stopped", async () => {
    const { clock, csi, start } = await world();
    const registrar = start();
    await clock.advance(20_000);
    expect(csi.endpoints()).toEqual([]);
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    await clock.advance(2_000);
    expect(registrar.socketPath()).toBe(registrationSocket);
    const kubelet = csi.connectRegistration(registrationSocket);
    expect(await kubelet.getInfo(call)).toMatchObject({
      type: "CSIPlugin",
      name: "ebs.csi.aws.com",
      endpoint: kubeletRegistrationPath,
      supportedVersions: ["1.0.0"],
    });
    await kubelet.notifyRegistrationStatus({ pluginRegistered: true, error: "" }, call);
    expect(registrar.isRegistered()).toBe(true);
    await registrar.stop();
    expect(csi.endpoints()).toEqual(["/csi.sock"]);
  });

  it("fails when the kubelet refuses the driver", async () => {
    const { clock, csi, start } = await world();
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    const registrar = start();
    await clock.advance(1_000);
    await csi
      .connectRegistration(registrationSocket)
      .notifyRegistrationStatus({ pluginRegistered: false, error: "wrong version" }, call);
    const error = await registrar.failed;
    expect(error).toBeInstanceOf(RegistrationError);
    expect(error.message).toBe("the kubelet refused driver ebs.csi.aws.com: wrong version");
    await registrar.stop();
  });

  it("fails when its socket cannot be made", async () => {
    const { clock, csi, start } = await world();
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    await csi.serve(registrationSocket, { identity: {} });
    const registrar = start();
    await clock.advance(1_000);
    expect((await registrar.failed).cause).toMatchObject({ message: expect.stringContaining("in use") });
    await registrar.stop();
  });

  it("has a health: of its socket, and of who answers on it", async () => {
    const { clock, csi, start } = await world();
    const registrar = start();
    expect(await registrar.check(never)).toEqual({ status: 404, body: "registration socket does not exist" });
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    await clock.advance(20_000);
    expect(await registrar.check(never)).toEqual({ status: 200, body: "ok" });
    csi.crash(registrationSocket);
    expect((await registrar.check(never)).status).toBe(500);
    await csi.serveRegistration(registrationSocket, {
      getInfo: async () => ({ type: "CSIPlugin", name: "other", endpoint: "/o", supportedVersions: [] }),
      notifyRegistrationStatus: async () => {},
    });
    expect(await registrar.check(never)).toMatchObject({
      status: 500,
      body: expect.stringContaining("other"),
    });
    await registrar.stop();
    expect((await registrar.check(never)).status).toBe(404);
  });

  it("keeps a file for the exec probe, for as long as the driver is registered", async () => {
    const { clock, csi, start, host } = await world();
    const probe = () => registrationProbe(host, kubeletRegistrationPath);
    await host.makeDirectory("/var/lib/kubelet/plugins/ebs.csi.aws.com");
    // Left by an earlier life.
    await host.writeFileAtomic("/var/lib/kubelet/plugins/ebs.csi.aws.com/registration", "");
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    const registrar = start();
    await clock.advance(1_000);
    expect(await probe()).toContain("has not registered the driver");
    const kubelet = csi.connectRegistration(registrationSocket);
    await kubelet.notifyRegistrationStatus({ pluginRegistered: true, error: "" }, call);
    expect(await probe()).toBeUndefined();
    await kubelet.notifyRegistrationStatus({ pluginRegistered: false, error: "no" }, call);
    expect(await probe()).toBeDefined();
    await kubelet.notifyRegistrationStatus({ pluginRegistered: true, error: "" }, call);
    await registrar.stop();
    expect(await probe()).toBeDefined();
  });

  it("makes its socket again when the kubelet's directory was made again", async () => {
    const { clock, csi, start, host } = await world();
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    const registrar = start();
    await clock.advance(1_000);
    await csi
      .connectRegistration(registrationSocket)
      .notifyRegistrationStatus({ pluginRegistered: true, error: "" }, call);
    await host.removeFile(registrationSocket);
    await clock.advance(10_000);
    expect((await host.stat(registrationSocket))?.kind).toBe("socket");
    expect(registrar.isRegistered()).toBe(false);
    expect((await csi.connectRegistration(registrationSocket).getInfo(call)).name).toBe("ebs.csi.aws.com");
    await registrar.stop();
    expect(await host.stat(registrationSocket)).toBeUndefined();
  });

  it("ends when another registrar took its socket", async () => {
    const { clock, csi, start, host } = await world();
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    const registrar = start();
    await clock.advance(1_000);
    await host.removeFile(registrationSocket);
    host.placeSocket(registrationSocket);
    await clock.advance(10_000);
    expect((await registrar.failed).message).toContain("another registrar");
    await registrar.stop();
  });

  it("says that it does not run on Windows", () => {
    expect(unsupportedPlatform("win32")).toContain("Windows");
    expect(unsupportedPlatform("linux")).toBeUndefined();
  });

  it("does the same over real sockets, which only their owner may open", async () => {
    const directory = mkdtempSync("/tmp/ls-reg-");
    const env: RuntimeEnv = {
      clock: systemClock,
      random: new SeededRandom(1),
      logger: silentLogger,
      meter: noMeter,
    };
    const [listener, connector] = [grpcListener(env), grpcConnector(env)];
    const driver = await listener.serve(`${directory}/csi.sock`, fakeDriver(new FakeCloud()));
    const csi = connector.connect(`${directory}/csi.sock`);
    const options = { kubeletRegistrationPath, registrationDir: directory };
    const path = `${directory}/ebs.csi.aws.com-reg.sock`;
    // A server that was killed left its socket.
    const listenAndDie = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, 9))`;
    expect(spawnSync(process.execPath, ["-e", listenAndDie, path]).signal).toBe("SIGKILL");
    expect(existsSync(path)).toBe(true);
    const seams = { ...env, csi, listener, connector, host: kernelHost() };
    const registrar = startNodeDriverRegistrar(seams, { ...options, checkSocketMs: 20 });
    const served = async () => {
      while ((await registrar.check(never)).status !== 200)
        await new Promise((resolve) => setImmediate(resolve));
    };
    await served();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const kubelet = connector.connectRegistration(path);
    expect((await kubelet.getInfo(call)).endpoint).toBe(kubeletRegistrationPath);
    kubelet.close();
    // The kubelet's directory is emptied.
    unlinkSync(path);
    expect((await registrar.check(never)).status).toBe(404);
    await served();
    await registrar.stop();
    expect(existsSync(path)).toBe(false);
    csi.close();
    await driver.close();
    rmSync(directory, { recursive: true });
  });
});
