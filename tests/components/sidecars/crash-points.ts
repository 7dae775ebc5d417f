/** Runs a work cycle once for each point at which its sidecar can die, and reports how many of them ended well. */
import { type Component, SeededRandom } from "@longshore/runtime";
import type { SidecarEnv } from "@longshore/sidecars";
import {
  type CrashPoint,
  type CrashReport,
  crashAtEveryPoint,
  crashInPairs,
  Succession,
} from "@longshore/testing/kube";
import { mortal } from "../../../packages/sidecars/src/testing/crashing.ts";
import { type CrashWorld, crashWorld } from "./crash-world.ts";
import type { WorkCycle } from "./work-cycles.ts";

/** What is killed, and what it is to do. */
export interface CrashScenario {
  readonly name: string;
  readonly start: (env: SidecarEnv) => Component;
  /** Runs during the whole scenario and does not crash, e.g. the snapshot controller for the snapshotter. */
  readonly companion?: (env: SidecarEnv) => Component;
  readonly cycle: WorkCycle;
}

/** How it went, and how long a cycle took at most, in virtual milliseconds. */
export interface CrashTimes extends CrashReport {
  readonly slowest: { readonly points: readonly CrashPoint[]; readonly tookMs: number };
}

/**
 * Kills the sidecar at every point of its cycle, one after the other, each in a world of its own.
 * @param awayMs time until its restart, in virtual milliseconds: the world goes on meanwhile
 */
export async function crashCycle(scenario: CrashScenario, awayMs: number): Promise<CrashTimes> {
  let slowest: CrashTimes["slowest"] = { points: [], tookMs: 0 };
  const report = await crashAtEveryPoint(async (points) => {
    const { calls, tookMs } = await live(scenario, points, () => awayMs);
    if (tookMs > slowest.tookMs) slowest = { points, tookMs };
    return calls;
  }, scenario);
  return { ...report, slowest };
}

/** Kills the sidecar at a point of its cycle, and the one that takes its place, at once, at a point of what is left of it. */
export function crashCycleInPairs(scenario: CrashScenario, most: number): Promise<CrashReport> {
  return crashInPairs(async (points) => (await live(scenario, points)).calls, most, scenario);
}

/** What a run of several deaths is made from; the same seed yields the same run. */
export interface SeededCrashes {
  readonly seed: number;
  /** How many of the deaths there were before the end. */
  readonly deaths: number;
  /** How it ended, if badly. */
  readonly error: unknown;
  /** Where it was to die, for who looks into it. */
  readonly trail: readonly string[];
}

/** Kills the sidecar up to three times a cycle, at points and with pauses at random, once for each seed. */
export async function crashRandomly(
  scenario: CrashScenario,
  seeds: readonly number[],
): Promise<readonly SeededCrashes[]> {
  const [undisturbed = []] = (await live(scenario, [])).calls;
  const runs: SeededCrashes[] = [];
  for (const seed of seeds) {
    const random = new SeededRandom(seed);
    const deaths = Array.from({ length: 3 }, () => ({
      at: 1 + random.below(undisturbed.length, "call"),
      side: random.below(2, "side") === 0 ? ("before" as const) : ("after" as const),
      awayMs: random.below(3, "pause") * 2500,
    }));
    const trail = deaths.map(({ at, side, awayMs }) => `${side} call ${at}, ${awayMs} ms away`);
    try {
      const { calls } = await live(scenario, deaths, (death) => deaths[death]?.awayMs ?? 0);
      runs.push({ seed, deaths: calls.length - 1, error: undefined, trail });
    } catch (error) {
      runs.push({ seed, deaths: 0, error, trail });
    }
  }
  return runs;
}

/** One run of the cycle, with one incarnation after the other. @param awayMs from a death to the restart, in virtual milliseconds */
async function live(
  { start, companion, cycle }: CrashScenario,
  points: readonly CrashPoint[],
  awayMs: (death: number) => number = () => 0,
): Promise<{ readonly tookMs: number; readonly calls: readonly (readonly string[])[] }> {
  const world: CrashWorld = await crashWorld();
  const { clock } = world;
  const startedMs = clock.monotonicMs();
  const helper = companion?.(world.env());
  let deaths = 0;
  let tookMs = 0;
  const sidecars = new Succession(
    points,
    (life) => start(mortal(world.env(), life)),
    () => clock.sleep(awayMs(deaths++), world.signal),
  );
  try {
    await cycle(world, "1");
  } finally {
    tookMs = clock.monotonicMs() - startedMs;
    await clock.run(sidecars.stop());
    await helper?.stop();
  }
  return { tookMs, calls: sidecars.calls };
}
