/** The driver of a place whose services are passed on from elsewhere. */
import { inProcessCsi } from "@longshore/csi";
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { type CsiDriverEnv, DriverNotReadyError, startCsiDriverOnNode } from "./csi-driver.ts";

test("a driver elsewhere that never answers ends the start, with its socket in the error", async () => {
  const clock = new VirtualClock();
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
