/** Runs a work cycle once for each point at which its sidecar can die, and tells how many of them ended well. */
import type { Component } from "@longshore/runtime";
import type { SidecarEnv } from "../common/env.ts";
import { type CrashWorld, crashWorld } from "./crash-world.ts";
import { Life, mortal } from "./crashing.ts";
import type { WorkCycle } from "./work-cycles.ts";

/** What is killed, and what it is to do. */
export interface CrashStory {
  readonly name: string;
  readonly start: (env: SidecarEnv) => Component;
  /** Lives through it all, e.g. the snapshot controller beside the snapshotter. */
  readonly companion?: (env: SidecarEnv) => Component;
  readonly cycle: WorkCycle;
}

/** One point that did not end well. */
export interface BadEnd {
  /** e.g. `after patch VolumeAttachment (23)` */
  readonly point: string;
  readonly error: unknown;
}

/** How it went. */
export interface CrashReport {
  /** Points between the calls of an undisturbed run: before each call is sent, and after its answer. */
  readonly points: number;
  readonly badEnds: readonly BadEnd[];
  /** How long a cycle took at most, in virtual milliseconds, and at which point it was. */
  readonly slowest: { readonly point: string; readonly tookMs: number };
  /** The calls of an undisturbed run. */
  readonly calls: readonly string[];
  /** e.g. `attacher: 57/57 crash points` */
  readonly summary: string;
}

/**
 * Kills the sidecar at every point of its cycle, one after the other, each in a world of its own.
 * @param awayMs how long nobody is there in its place, in virtual milliseconds: the world goes on meanwhile
 */
export async function crashAtEveryPoint(story: CrashStory, awayMs: number): Promise<CrashReport> {
  const undisturbed = await live(story, new Life(), awayMs);
  if (undisturbed.error !== undefined) throw undisturbed.error;
  const badEnds: BadEnd[] = [];
  let slowest = { point: "none", tookMs: undisturbed.tookMs };
  for (let at = 1; at <= undisturbed.life.calls; at++) {
    for (const side of ["before", "after"] as const) {
      const { life, error, tookMs } = await live(story, new Life(at, side), awayMs);
      const point = `${side} ${undisturbed.life.log[at - 1]} (${at})`;
      if (error !== undefined) badEnds.push({ point, error });
      else if (!life.dead) badEnds.push({ point, error: new Error("the point was not reached") });
      if (tookMs > slowest.tookMs) slowest = { point, tookMs };
    }
  }
  const points = 2 * undisturbed.life.calls;
  return {
    points,
    badEnds,
    slowest,
    calls: undisturbed.life.log,
    summary: `${story.name}: ${points - badEnds.length}/${points} crash points`,
  };
}

/** One run of the cycle; the first incarnation has `life`, the one after it lives on. */
async function live(
  { start, companion, cycle }: CrashStory,
  life: Life,
  awayMs: number,
): Promise<{ readonly life: Life; readonly tookMs: number; readonly error?: unknown }> {
  const world: CrashWorld = await crashWorld();
  const { clock } = world;
  const startedMs = clock.monotonicMs();
  const tookMs = () => clock.monotonicMs() - startedMs;
  const helper = companion?.(world.env());
  let current: Component | undefined = start(mortal(world.env(), life));
  const heir = life.death.then(async () => {
    // What is dead cannot be stopped.
    current = undefined;
    if (awayMs > 0) await clock.sleep(awayMs, world.signal);
    current = start(world.env());
  });
  try {
    await cycle(world, "1");
    return { life, tookMs: tookMs() };
  } catch (error) {
    return { life, tookMs: tookMs(), error };
  } finally {
    if (life.dead) await clock.run(heir);
    await current?.stop();
    await helper?.stop();
  }
}
