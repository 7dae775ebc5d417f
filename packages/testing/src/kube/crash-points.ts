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

/** Which pairs are played. */
export interface PairChoice extends CrashChoice {
  /** Which calls change something that the next life finds, by what they are. Left out: all but those that read. */
  readonly isChange?: (what: string) => boolean;
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

/** Calls that change nothing that outlives the process. A lease is written at all times, and an event is read by no component. */
const reads =
  /^(get|list|watch|read|stat$|is[A-Z]|servedVersion|usage|fileSystemOf|close|probe|nodeGet|controllerGet)| (Lease|Event)$/;

/**
 * Kills it after each of its changes, and the one that takes its place after each change of its own. What has been read ends with a process:
 * points with no change between them leave the same behind, so these are the pairs that differ. Then `most` pairs of any points, drawn by a
 * seed; all of them with `LONGSHORE_CRASH_PAIRS=all`.
 * @throws Error of an undisturbed run that ends badly
 */
export async function crashInPairs(flow: CrashFlow, most: number, choice: PairChoice): Promise<CrashReport> {
  const { name, isChange = (what: string) => !reads.test(what) } = choice;
  const isChosen = (_call: number, what: string) => isChange(what);
  const changes = new CrashRun(flow, { name, sides: ["after"] });
  const calls = await changes.undisturbed();
  await changes.playPairs(changes.pointsOf(calls, isChosen), isChosen);
  const ofChanges = changes.report(calls, "pairs of changes");

  const run = new CrashRun(flow, { ...choice, name: "and" });
  const firsts = run.pointsOf(calls, choice.isChosen);
  const isAll = process.env.LONGSHORE_CRASH_PAIRS === "all";
  const size = isAll ? await run.playPairs(firsts) : await run.playSample(firsts, most);
  const ofAny = run.report(calls, `pairs of crash points${isAll ? "" : `, a sample of about ${size}`}`);
  return {
    played: ofChanges.played + ofAny.played,
    failures: [...ofChanges.failures, ...ofAny.failures],
    calls,
    summary: `${ofChanges.summary}, ${ofAny.summary}`,
  };
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

  /** Each of them, and each chosen one of the life that is then before it. @returns how many pairs that were */
  async playPairs(firsts: readonly CrashPoint[], isChosen?: CrashChoice["isChosen"]): Promise<number> {
    for (const first of firsts)
      for (const second of await this.#pointsAfter(first, isChosen)) await this.play([first, second]);
    return this.#played;
  }

  /** As many pairs, drawn by a seed. @returns about how many there are */
  async playSample(firsts: readonly CrashPoint[], most: number): Promise<number> {
    const random = new SeededRandom(1);
    let seconds = 0;
    const chosen = Array.from({ length: most }, () => drawn(firsts, random));
    for (const first of chosen) {
      const after = await this.#pointsAfter(first);
      seconds += after.length;
      if (after.length > 0) await this.play([first, drawn(after, random)]);
    }
    return Math.round((seconds / most) * firsts.length);
  }

  /** The points of the life that follows a death at `first`. */
  async #pointsAfter(first: CrashPoint, isChosen?: CrashChoice["isChosen"]): Promise<readonly CrashPoint[]> {
    try {
      return this.pointsOf((await this.#flow([first]))[1] ?? [], isChosen);
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
