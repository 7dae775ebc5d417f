import { mkdtempSync, rmSync, statSync } from "node:fs";
import { grpcConnector, grpcListener, inProcessCsi } from "@longshore/csi";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  silentLogger,
  systemClock,
  VirtualClock,
} from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { RegistrationError, startNodeDriverRegistrar } from "../index.ts";
import { FakeCloud, fakeDriver } from "../testing/fake-driver.ts";

const never = new AbortController().signal;
const call = { signal: never, timeoutMs: 5_000 };
const kubeletRegistrationPath = "/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock";
const registrationSocket = "/registration/ebs.csi.aws.com-reg.sock";

function world() {
  const clock = new VirtualClock();
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const csi = inProcessCsi({ clock });
  const start = () =>
    startNodeDriverRegistrar(
      { ...env, csi: csi.connect("/csi.sock"), listener: csi },
      { kubeletRegistrationPath },
    );
  return { clock, csi, start };
}

describe("the node-driver-registrar", () => {
  it("waits for its driver, then tells the kubelet about it until it is stopped", async () => {
    const { clock, csi, start } = world();
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
    const { clock, csi, start } = world();
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
    const { clock, csi, start } = world();
    await csi.serve("/csi.sock", fakeDriver(new FakeCloud()));
    await csi.serve(registrationSocket, { identity: {} });
    const registrar = start();
    await clock.advance(1_000);
    expect((await registrar.failed).cause).toMatchObject({ message: expect.stringContaining("in use") });
    await registrar.stop();
  });

  it("does the same over real sockets, which nobody else may open", async () => {
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
    const registrar = startNodeDriverRegistrar({ ...env, csi, listener }, options);
    while (registrar.socketPath() === undefined) await new Promise((resolve) => setImmediate(resolve));
    const path = `${directory}/ebs.csi.aws.com-reg.sock`;
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const kubelet = connector.connectRegistration(path);
    expect((await kubelet.getInfo(call)).endpoint).toBe(kubeletRegistrationPath);
    kubelet.close();
    await registrar.stop();
    csi.close();
    await driver.close();
    rmSync(directory, { recursive: true });
  });
});
