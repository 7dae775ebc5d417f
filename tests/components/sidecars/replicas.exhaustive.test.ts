/**
 * Two replicas of the sidecars, each with a lease of its own: whenever the working one is paused for a minute or
 * killed, the other finishes what was begun, and the one that resumes does nothing that the other's lease forbids.
 */
import { startSidecars } from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { describe, expect, it } from "vitest";
import { crashWorld } from "./crash-world.ts";
import { type Accident, type Holders, Replica, type Sent } from "./replica.ts";
import { type CycleName, workCycles } from "./work-cycles.ts";

const minute = 60_000;

/** One run of a cycle with two replicas, of which the first begins and has an accident. */
async function run(name: CycleName, accident?: Accident) {
  const world = await crashWorld();
  const holders: Holders = new Map();
  const first = new Replica(world.env(), "first", holders, accident);
  const second = new Replica(world.env(), "second", holders);
  const start = (replica: Replica) =>
    startSidecars(replica.env(), {
      sidecars: { [name]: {} },
      lease: { namespace: "default", identity: replica.identity },
    });
  const helper = name === "snapshotter" ? startSnapshotController(world.env()) : undefined;
  const working = start(first);
  await world.eventually("the first leads", async () => holders.size > 0);
  const waiting = start(second);
  await workCycles[name](world, "1");
  // All paused replicas have resumed by now, and the leases have their final holders.
  await world.clock.advance(2 * minute);
  const late = (sent: readonly Sent[], identity: string) => sent.filter(({ holder }) => holder !== identity);
  const seen = {
    first: first.sent.length,
    second: second.sent.length,
    late: [...late(first.sent, "first"), ...late(second.sent, "second")],
    holder: [...holders.values()][0],
  };
  const alive = accident?.stopMs === Number.POSITIVE_INFINITY ? [waiting] : [waiting, working];
  for (const each of [...alive, helper]) await world.clock.run(each?.stop() ?? Promise.resolve());
  return seen;
}

describe.each(Object.keys(workCycles) as CycleName[])("of two replicas of the %s", (name) => {
  it("one works, and the other waits", async () => {
    const { first, second, late } = await run(name);
    expect(first).toBeGreaterThan(3);
    expect(second).toBe(0);
    expect(late).toEqual([]);
  });

  it.each([
    ["is stopped for a minute", minute],
    ["is killed", Number.POSITIVE_INFINITY],
  ])("the other finishes what was begun, at whichever call the first %s", async (_what, stopMs) => {
    const { first: calls } = await run(name);
    for (let after = 1; after <= calls; after++) {
      const { late, second } = await run(name, { after, stopMs });
      expect(late, `after call ${after}`).toEqual([]);
      if (after < calls) expect(second, `after call ${after}`).toBeGreaterThan(0);
    }
  });
});
