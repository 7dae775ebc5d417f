/** Runs a work cycle once for each point at which its sidecar can die, and reports how many of them ended well. */
import { type Component, SeededRandom } from "@longshore/runtime";
import type { SidecarEnv } from "@longshore/sidecars";
import { type CrashPair, type CrashPoint, Life, pointsOf, sampleOf } from "@longshore/testing/kube";
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

/** One point that did not end well. */
export interface Failure {
  /** e.g. `after patch VolumeAttachment (23)` */
  readonly point: string;
  readonly error: unknown;
}

/** How it went. */
export interface CrashReport {
  /** Points between the calls of an undisturbed run: before each call is sent, and after its answer. */
  readonly points: number;
  readonly failures: readonly Failure[];
  /** How long a cycle took at most, in virtual milliseconds, and at which point it was. */
  readonly slowest: { readonly point: string; readonly tookMs: number };
  /** The calls of an undisturbed run. */
  readonly calls: readonly string[];
  /** e.g. `attacher: 57/57 crash points` */
  readonly summary: string;
}

/**
 * Kills the sidecar at every point of its cycle, one after the other, each in a world of its own.
 * @param awayMs time until its restart, in virtual milliseconds: the world goes on meanwhile
 */
export async function crashAtEveryPoint(scenario: CrashScenario, awayMs: number): Promise<CrashReport> {
  const undisturbed = await runWithoutCrash(scenario);
  const failures: Failure[] = [];
  let slowest = { point: "none", tookMs: 0 };
  for (let at = 1; at <= undisturbed.calls; at++) {
    for (const side of ["before", "after"] as const) {
      const life = new Life(at, side);
      const { error, tookMs } = await live(scenario, [{ life, awayMs }]);
      const point = `${side} ${undisturbed.log[at - 1]} (${at})`;
      if (error !== undefined) failures.push({ point, error });
      else if (!life.dead) failures.push({ point, error: new Error("the point was not reached") });
      if (tookMs > slowest.tookMs) slowest = { point, tookMs };
    }
  }
  const points = 2 * undisturbed.calls;
  return {
    points,
    failures,
    slowest,
    calls: undisturbed.log,
    summary: `${scenario.name}: ${points - failures.length}/${points} crash points`,
  };
}

/** How the pairs went. */
export interface PairReport {
  /** All pairs: of each point of the first life with each of the life after it. */
  readonly pairs: number;
  readonly played: number;
  readonly failures: readonly Failure[];
  /** e.g. `attacher: 60/60 of 2116 pairs of crash points` */
  readonly summary: string;
}

/**
 * Kills the sidecar at a point of its cycle, and the one that takes its place, at once, at a point of what is left of it.
 * @param most how many pairs to play, drawn by a seed; all of them with `LONGSHORE_CRASH_PAIRS=all`
 */
export async function crashInPairs(scenario: CrashScenario, most: number): Promise<PairReport> {
  const undisturbed = await runWithoutCrash(scenario);
  const all: CrashPair[] = [];
  for (const first of pointsOf(undisturbed.calls)) {
    const second = new Life();
    await live(scenario, [
      { life: lifeTo(first), awayMs: 0 },
      { life: second, awayMs: 0 },
    ]);
    all.push(...pointsOf(second.calls).map((point): CrashPair => [first, point]));
  }
  const failures: Failure[] = [];
  const chosen = sampleOf(all, most, 1);
  for (const pair of chosen) {
    const lives = pair.map((point) => ({ life: lifeTo(point), awayMs: 0 }));
    const { error } = await live(scenario, lives);
    const point = lives
      .map(({ life }, at) => `${pair[at]?.side} ${life.log.at(-1)} (${life.calls})`)
      .join(", ");
    if (error !== undefined) failures.push({ point, error });
    else if (!lives.every(({ life }) => life.dead)) failures.push({ point, error: new Error("not reached") });
  }
  return {
    pairs: all.length,
    played: chosen.length,
    failures,
    summary: `${scenario.name}: ${chosen.length - failures.length}/${chosen.length} of ${all.length} pairs of crash points`,
  };
}

function lifeTo({ at, side }: CrashPoint): Life {
  return new Life(at, side);
}

/** What a run of several deaths is made from; the same seed yields the same run. */
export interface SeededCrashes {
  readonly seed: number;
  /** How it ended, if badly. */
  readonly error: unknown;
  /** Where it died, for who looks into it. */
  readonly trail: readonly string[];
}

/** Kills the sidecar up to three times a cycle, at points and with pauses at random, once for each seed. */
export async function crashRandomly(
  scenario: CrashScenario,
  seeds: readonly number[],
): Promise<readonly SeededCrashes[]> {
  const undisturbed = await runWithoutCrash(scenario);
  const runs: SeededCrashes[] = [];
  for (const seed of seeds) {
    const random = new SeededRandom(seed);
    const lives = Array.from({ length: 3 }, () => ({
      life: new Life(
        1 + random.below(undisturbed.calls, "call"),
        random.below(2, "side") === 0 ? "before" : "after",
      ),
      awayMs: random.below(3, "pause") * 2500,
    }));
    const { error } = await live(scenario, lives);
    const trail = lives.map(({ life, awayMs }) =>
      life.dead ? `${life.log.at(-1)} (${life.calls}), ${awayMs} ms away` : "lived on",
    );
    runs.push({ seed, error, trail });
  }
  return runs;
}

async function runWithoutCrash(scenario: CrashScenario): Promise<Life> {
  const life = new Life();
  const { error } = await live(scenario, [{ life, awayMs: 0 }]);
  if (error !== undefined) throw error;
  return life;
}

/** A life, and the time from its end to the restart, in virtual milliseconds. */
interface LimitedLife {
  readonly life: Life;
  readonly awayMs: number;
}

/** One run of the cycle, with one incarnation after the other; the one after the last of `lives` lives on. */
async function live(
  { start, companion, cycle }: CrashScenario,
  lives: readonly LimitedLife[],
): Promise<{ readonly tookMs: number; readonly error?: unknown }> {
  const world: CrashWorld = await crashWorld();
  const { clock } = world;
  const startedMs = clock.monotonicMs();
  const tookMs = () => clock.monotonicMs() - startedMs;
  const helper = companion?.(world.env());
  let current: Component | undefined;
  let heir: Promise<void> = Promise.resolve();
  const liveOn = ([next, ...rest]: readonly LimitedLife[]): void => {
    if (next === undefined) {
      current = start(world.env());
      return;
    }
    const { life, awayMs } = next;
    current = start(mortal(world.env(), life));
    void life.death.then(() => {
      // What is dead cannot be stopped.
      current = undefined;
      heir = clock.sleep(awayMs, world.signal).then(() => liveOn(rest));
    });
  };
  liveOn(lives);
  try {
    await cycle(world, "1");
    return { tookMs: tookMs() };
  } catch (error) {
    return { tookMs: tookMs(), error };
  } finally {
    while (current === undefined) await clock.run(heir);
    await (current as Component).stop();
    await helper?.stop();
  }
}
