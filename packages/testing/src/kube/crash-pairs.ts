/** Pairs of points at which a component dies, and then the one that has taken its place. */
import { SeededRandom } from "@longshore/runtime";
import type { Side } from "./mortal-client.ts";

/** A point between two calls of one life. */
export interface CrashPoint {
  /** The number of the call in that life, from 1. */
  readonly at: number;
  readonly side: Side;
}

/** A death of the first, and one of the second. */
export type CrashPair = readonly [first: CrashPoint, second: CrashPoint];

/** Some of many, drawn without repetition by the seed; all of them with `LONGSHORE_CRASH_PAIRS=all`. */
export function sampleOf<T>(all: readonly T[], most: number, seed: number): readonly T[] {
  if (process.env.LONGSHORE_CRASH_PAIRS === "all" || all.length <= most) return all;
  const random = new SeededRandom(seed);
  const left = [...all];
  return Array.from({ length: most }, () => left.splice(random.below(left.length, "pair"), 1)[0] as T);
}

/** The points of a life of so many calls: before and after each. */
export function pointsOf(calls: number): readonly CrashPoint[] {
  return Array.from({ length: calls }, (_, index) => index + 1).flatMap((at) => [
    { at, side: "before" as const },
    { at, side: "after" as const },
  ]);
}
