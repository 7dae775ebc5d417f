/**
 * `kill -9` of each controller sidecar at every point between its calls: the work ends as if nothing had happened, with
 * no volume leaked, lost or attached twice.
 */
import { startAttacher, startProvisioner, startResizer, startSnapshotter } from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { describe, expect, it } from "vitest";
import { type CrashScenario, crashCycle, crashCycleInPairs, crashRandomly } from "./crash-points.ts";
import { workCycles } from "./work-cycles.ts";

/** `rpcs`: what the cycle must have asked the driver for, or it did not do its work. */
const scenarios: readonly (CrashScenario & { readonly rpcs: readonly string[] })[] = [
  {
    name: "attacher",
    start: (env) => startAttacher(env),
    cycle: workCycles.attacher,
    rpcs: ["controllerPublishVolume", "controllerUnpublishVolume"],
  },
  {
    name: "provisioner",
    start: (env) => startProvisioner(env),
    cycle: workCycles.provisioner,
    rpcs: ["createVolume", "deleteVolume"],
  },
  {
    name: "resizer",
    start: (env) => startResizer(env),
    cycle: workCycles.resizer,
    rpcs: ["controllerExpandVolume"],
  },
  {
    name: "snapshotter",
    start: (env) => startSnapshotter(env),
    companion: (env) => startSnapshotController(env),
    cycle: workCycles.snapshotter,
    rpcs: ["createSnapshot", "deleteSnapshot"],
  },
];

const minuteMs = 60_000;

describe.each([
  ["at once", 0],
  ["after five seconds", 5000],
])("the work of a sidecar that is killed, when another takes its place %s, ends well:", (_, awayMs) => {
  it.each(scenarios)("$name", async (scenario) => {
    const report = await crashCycle(scenario, awayMs);
    console.log(report.summary);
    expect(report.failures).toEqual([]);
    expect(report.calls).toEqual(expect.arrayContaining([...scenario.rpcs]));
    // Found at once by who comes next, and not by the next resync.
    expect(report.slowest.tookMs, JSON.stringify(report.slowest.points)).toBeLessThan(awayMs + minuteMs);
  });
});

it.each(scenarios)(
  "the work of a $name that is killed, and the one after it too, ends well",
  async (scenario) => {
    const { failures, played, summary } = await crashCycleInPairs(scenario, 40);
    console.log(summary);
    expect(failures).toEqual([]);
    expect(played).toBeGreaterThan(20);
  },
);

it.each(scenarios)(
  "the work of a $name that is killed several times, anywhere, ends well",
  async (scenario) => {
    const runs = await crashRandomly(
      scenario,
      Array.from({ length: 25 }, (_, n) => 1000 + n),
    );
    expect(runs.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(runs.some(({ deaths }) => deaths === 3)).toBe(true);
  },
);
