/**
 * The growth of a mounted volume, with the agent's crash or a lost answer at each call that it makes: the next one finishes it, and the pod
 * keeps its mount.
 */
import { NodeServiceCapability_RPC_Type as Capability, lostReply } from "@longshore/csi";
import { KubeTransportError } from "@longshore/kube";
import { pointsOf, sampleOf } from "@longshore/testing/kube";
import { expect, it } from "vitest";
import { NodeWorld, type RunningAgent } from "./testing/node-world.ts";
import { type TestDriverOptions, testDriver } from "./testing/test-driver.ts";

type What = "crash before" | "crash after" | "lost answer to";

interface Fault {
  /** The number of the call, from the moment on at which the volume has grown. */
  readonly at: number;
  readonly what: What;
}

function lostAnswer(call: string): Error | undefined {
  if (/^node[A-Z]/.test(call)) return lostReply(call);
  return /^(get|list|create|update|patch|delete)$/.test(call) ? new KubeTransportError("reset") : undefined;
}

/** Runs the growth; returns the calls of the agents from its begin to its end. */
async function growth(driver: TestDriverOptions | undefined, faults: readonly Fault[]) {
  const world = await NodeWorld.create();
  world.registrarRestarts = true;
  const gates = driver === undefined ? {} : { CSIMigration: true, CSIMigrationAWS: true };
  if (driver !== undefined) await world.serveDriver(testDriver(world.host, driver));
  await world.volume("vol-1");
  const calls: string[] = [];
  let isCounting = false;
  let failed = 0;
  let running: RunningAgent | undefined;
  const launch = () => {
    const agent = world.start(gates, (call, when) => {
      if (!isCounting) return;
      if (when === "before") calls.push(call);
      const fault = faults[failed];
      const moment = fault?.what === "crash before" ? "before" : "after";
      if (when !== moment || calls.length !== fault?.at) return;
      failed++;
      if (fault.what === "lost answer to") {
        const error = lostAnswer(call);
        if (error !== undefined) throw error;
        return;
      }
      agent.crash();
      running = undefined;
      void world.clock.sleep(500, world.signal).then(launch);
    });
    running = agent;
  };
  launch();
  await (driver === undefined ? world.attachInTree("vol-1") : world.attachCsi("vol-1"));
  const pod = await world.pod("p", ["vol-1"]);
  const mount = () => running?.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1");
  await world.until("mounted", () => mount() !== undefined);
  world.running.add(pod.metadata.uid);
  const path = mount()?.path ?? "";
  await world.host.appendFileDurable(`${path}/data`, "written");
  await world.clock.advance(5_000);
  isCounting = true;
  const mountsBefore = await world.mounts();
  await world.growVolume("vol-1");
  await world.until("grown", async () => (await world.claimStatus("vol-1"))?.capacity?.storage === "2Mi");
  isCounting = false;
  expect((await world.claimStatus("vol-1"))?.conditions).toBeUndefined();
  expect((await world.host.usage(path)).totalBytes).toBe(2 * 2 ** 20);
  expect(await world.host.readFile(`${path}/data`)).toBe("written");
  await world.until("mounted again", () => mount() !== undefined);
  expect(await world.mounts()).toEqual(mountsBefore);
  await world.clock.run(Promise.resolve(running?.stop()));
  return calls;
}

it.each<[string, TestDriverOptions | undefined]>([
  ["in-tree", undefined],
  ["of a driver", { rpcs: [Capability.EXPAND_VOLUME, Capability.GET_VOLUME_STATS] }],
])(
  "a volume %s grows whatever happens at each call (node-agent.md 7.6; contract.md C8)",
  async (_, driver) => {
    const calls = await growth(driver, []);
    expect(calls.length).toBeGreaterThan(5);
    const failures: string[] = [];
    for (const [index, call] of calls.entries()) {
      for (const what of ["crash before", "crash after", "lost answer to"] as const) {
        if (what === "lost answer to" && lostAnswer(call) === undefined) continue;
        await growth(driver, [{ at: index + 1, what }]).catch((error: unknown) => {
          failures.push(
            `${what} call ${index + 1}, ${call}: ${error instanceof Error ? error.message : error}`,
          );
        });
      }
    }
    console.log(`${calls.length} calls, ${failures.length} failures`);
    const points = pointsOf(calls.length);
    const all = points.flatMap((first) =>
      points.flatMap((second) => (second.at > first.at ? [[first, second]] : [])),
    );
    const chosen = sampleOf(all, 20, 1);
    for (const pair of chosen) {
      const faults = pair.map(({ at, side }): Fault => ({ at, what: `crash ${side}` }));
      await growth(driver, faults).catch((error: unknown) => {
        failures.push(
          `${faults.map(({ at, what }) => `${what} call ${at}`).join(", ")}: ${error instanceof Error ? error.message : error}`,
        );
      });
    }
    console.log(`${chosen.length} of ${all.length} pairs of crash points, ${failures.length} failures`);
    expect(failures).toEqual([]);
  },
  600_000,
);
