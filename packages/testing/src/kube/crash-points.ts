/** Kills what does the work of a flow at one point after another, and at pairs of points, and counts how many of them end well. */
import { type Random, SeededRandom } from "@longshore/runtime";
import type { Side } from "./mortal-client.ts";

/** A point between two calls of one life. */
export interface CrashPoint {
  /** The number of the call in that life, from 1. */
  readonly at: number;
  readonly side: Side;
}

/**
 * Plays a flow in a world of its own: its component dies at the first point, the one that takes its place at the second, and so on; the
 * one after the last point lives on.
 * @returns what the calls of each of them were, in order
 * @throws Error at a wrong end
 */
export type CrashFlow = (points: readonly CrashPoint[]) => Promise<readonly (readonly string[])[]>;

/** Which points are played. */
export interface CrashChoice {
  /** For the summary, e.g. `attacher`. */
  readonly name: string;
  /** Default: both. After a call alone, where nothing has an effect between two calls. */
  readonly sides?: readonly Side[];
  /** Of single points, and of the first ones of pairs: chooses calls by their number and what they are; left out: all. */
  readonly isChosen?: (call: number, what: string) => boolean;
}

/** How it went. */
export interface CrashReport {
  readonly played: number;
  /** Those that did not end well, as `after delete PersistentVolumeClaim (23), before get Node (2): what was wrong`. */
  readonly failures: readonly string[];
  /** The calls of an undisturbed run. */
  readonly calls: readonly string[];
  /** e.g. `attacher: 46/46 crash points` */
  readonly summary: string;
}

/** Kills it at every point, one after the other. @throws Error of an undisturbed run that ends badly */
export async function crashAtEveryPoint(flow: CrashFlow, choice: CrashChoice): Promise<CrashReport> {
  const run = new CrashRun(flow, choice);
  const calls = await run.undisturbed();
  for (const point of run.pointsOf(calls, choice.isChosen)) await run.play([point]);
  return run.report(calls, "crash points");
}

/**
 * Kills it at a point, and the one that takes its place at a point of the life that is then before it.
 * @param most how many pairs to play, drawn by a seed; all of them with `LONGSHORE_CRASH_PAIRS=all`
 * @throws Error of an undisturbed run that ends badly
 */
export async function crashInPairs(flow: CrashFlow, most: number, choice: CrashChoice): Promise<CrashReport> {
  const run = new CrashRun(flow, choice);
  const calls = await run.undisturbed();
  const firsts = run.pointsOf(calls, choice.isChosen);
  if (process.env.LONGSHORE_CRASH_PAIRS === "all") {
    for (const first of firsts)
      for (const second of await run.pointsAfter(first)) await run.play([first, second]);
    return run.report(calls, "pairs of crash points");
  }
  const random = new SeededRandom(1);
  let seconds = 0;
  const chosen = Array.from({ length: most }, () => drawn(firsts, random));
  for (const first of chosen) {
    const after = await run.pointsAfter(first);
    seconds += after.length;
    if (after.length > 0) await run.play([first, drawn(after, random)]);
  }
  const all = Math.round((seconds / most) * firsts.length);
  return run.report(calls, `pairs of crash points, a sample of about ${all}`);
}

function drawn<T>(all: readonly T[], random: Random): T {
  return all[random.below(all.length, "point")] as T;
}

/** The plays of one flow, and those of them that did not end well. */
class CrashRun {
  readonly #flow: CrashFlow;
  readonly #choice: CrashChoice;
  readonly #failures: string[] = [];
  #played = 0;

  constructor(flow: CrashFlow, choice: CrashChoice) {
    this.#flow = flow;
    this.#choice = choice;
  }

  async undisturbed(): Promise<readonly string[]> {
    return (await this.#flow([]))[0] ?? [];
  }

  pointsOf(calls: readonly string[], isChosen: CrashChoice["isChosen"] = () => true): readonly CrashPoint[] {
    const { sides = ["before", "after"] } = this.#choice;
    return calls.flatMap((what, index) =>
      isChosen(index + 1, what) ? sides.map((side): CrashPoint => ({ at: index + 1, side })) : [],
    );
  }

  /** The points of the life that follows a death at `first`. */
  async pointsAfter(first: CrashPoint): Promise<readonly CrashPoint[]> {
    try {
      return this.pointsOf((await this.#flow([first]))[1] ?? []);
    } catch (error) {
      this.#failed([first], error);
      return [];
    }
  }

  async play(points: readonly CrashPoint[]): Promise<void> {
    this.#played++;
    try {
      const lives = await this.#flow(points);
      if (lives.length <= points.length) throw new Error("a point was not reached");
    } catch (error) {
      this.#failed(points, error);
    }
  }

  report(calls: readonly string[], what: string): CrashReport {
    const [played, failures] = [this.#played, this.#failures];
    const summary = `${this.#choice.name}: ${played - failures.length}/${played} ${what}`;
    return { played, failures, calls, summary };
  }

  #failed(points: readonly CrashPoint[], error: unknown): void {
    const where = points.map(({ at, side }) => `${side} call ${at}`).join(", then ");
    this.#failures.push(`${where}: ${error instanceof Error ? error.message : error}`);
  }
}
