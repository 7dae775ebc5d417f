/** The driver of a place whose services are passed on from elsewhere. */
import { inProcessCsi } from "@longshore/csi";
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { type CsiDriverEnv, DriverNotReadyError, startCsiDriverOnNode } from "./csi-driver.ts";

function nodeEnv(clock: VirtualClock) {
  const csi = inProcessCsi({ clock });
  const env = {
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
    host: new SimulatedHost(),
    connector: csi,
    listener: csi,
  } as unknown as CsiDriverEnv;
  return { csi, env };
}

test("a driver elsewhere with another name ends the start at once, with both names", async () => {
  const clock = new VirtualClock();
  const { csi, env } = nodeEnv(clock);
  await csi.serve("/other.sock", {
    identity: {
      getPluginInfo: async () => ({ name: "other.example.com", vendorVersion: "1" }),
      getPluginCapabilities: async () => ({}),
      probe: async () => ({ ready: true }),
    },
  });
  const options = { driverName: "d.example.com", nodeName: "n1", rootDir: "/node", endpoint: "/other.sock" };
  await expect(clock.run(startCsiDriverOnNode(env, options))).rejects.toThrow(
    "the driver at /other.sock calls itself other.example.com, but this cluster is to have d.example.com",
  );
});

test("a driver elsewhere that never answers ends the start, with its socket in the error", async () => {
  const clock = new VirtualClock();
  const { env } = nodeEnv(clock);
  const options = {
    driverName: "d.example.com",
    nodeName: "n1",
    rootDir: "/node",
    endpoint: "/nothing.sock",
  };
  const outcome = startCsiDriverOnNode(env, options).then(
    () => "started",
    (error: unknown) => error,
  );
  await clock.advance(11 * 60_000);
  const early = await Promise.race([outcome, Promise.resolve("still waiting")]);
  expect(early).toBeInstanceOf(DriverNotReadyError);
  expect((early as Error).message).toContain("the driver at /nothing.sock was not ready within 10 minutes");
});

test("a driver whose directory has another name is registered under its own one, with the socket there", async () => {
  const clock = new VirtualClock();
  const { csi, env } = nodeEnv(clock);
  await csi.serve("/elsewhere.sock", {
    identity: {
      getPluginInfo: async () => ({ name: "d.example.com", vendorVersion: "2" }),
      getPluginCapabilities: async () => ({}),
      probe: async () => ({ ready: true }),
    },
  });
  const options = { driverName: "d.example.com", nodeName: "n1", rootDir: "/node", directory: "d-2" };
  const info = await clock.run(
    (async () => {
      const driver = await startCsiDriverOnNode(env, { ...options, endpoint: "/elsewhere.sock" });
      await clock.sleep(5000, new AbortController().signal);
      const client = csi.connectRegistration("/node/plugins_registry/d.example.com-reg.sock");
      const found = await client.getInfo({ signal: new AbortController().signal, timeoutMs: 1000 });
      client.close();
      await driver.stop();
      return found;
    })(),
  );
  expect(info).toMatchObject({ name: "d.example.com", endpoint: "/node/plugins/d-2/csi.sock" });
});
