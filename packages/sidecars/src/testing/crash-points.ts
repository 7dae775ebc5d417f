/** Runs a work cycle once for each point at which its sidecar can die, and tells how many of them ended well. */
import type { Component } from "@longshore/runtime";
import type { SidecarEnv } from "../common/env.ts";
import { type CrashWorld, crashWorld } from "./crash-world.ts";
import { Life, mortal, type Side } from "./crashing.ts";
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
  /** The calls of an undisturbed run. */
  readonly calls: readonly string[];
  /** e.g. `attacher: 57/57 crash points` */
  readonly summary: string;
}

/** Kills the sidecar at every point of its cycle, one after the other, each in a world of its own. */
export async function crashAtEveryPoint(story: CrashStory): Promise<CrashReport> {
  const undisturbed = await live(story, new Life());
  if (undisturbed.error !== undefined) throw undisturbed.error;
  const badEnds: BadEnd[] = [];
  for (let at = 1; at <= undisturbed.life.calls; at++) {
    for (const side of ["before", "after"] as const) {
      const error = await crashOnce(story, at, side);
      if (error !== undefined)
        badEnds.push({ point: `${side} ${undisturbed.life.log[at - 1]} (${at})`, error });
    }
  }
  const points = 2 * undisturbed.life.calls;
  return {
    points,
    badEnds,
    calls: undisturbed.life.log,
    summary: `${story.name}: ${points - badEnds.length}/${points} crash points`,
  };
}

async function crashOnce(story: CrashStory, at: number, side: Side): Promise<unknown> {
  const { life, error } = await live(story, new Life(at, side));
  if (error !== undefined) return error;
  return life.dead ? undefined : new Error("the point was not reached");
}

/** One run of the cycle; the first incarnation has `life`, the one after it lives on. */
async function live(
  { start, companion, cycle }: CrashStory,
  life: Life,
): Promise<{ readonly life: Life; readonly error?: unknown }> {
  const world: CrashWorld = await crashWorld();
  const helper = companion?.(world.env());
  const first = start(mortal(world.env(), life));
  let current: Component | undefined = first;
  void life.death.then(() => {
    current = start(world.env());
  });
  try {
    await cycle(world, "1");
    return { life };
  } catch (error) {
    return { life, error };
  } finally {
    await current?.stop();
    await helper?.stop();
  }
}
