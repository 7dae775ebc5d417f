/**
 * The fewest faults with which a run still fails: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
 * Failure-Inducing Input", the algorithm ddmin) over the faults that happened in it.
 */

/** What was found. */
export interface Minimised<T> {
  /** No proper part of them that was tried fails; where `isMinimal`, none that lacks one of them does. */
  readonly kept: readonly T[];
  /** Every run without one of the kept ones was tried, and does not fail. */
  readonly isMinimal: boolean;
  /** How many runs it took. */
  readonly runs: number;
}

/** How to minimise. */
export interface MinimiseOptions {
  /** Most runs to make; default 400. */
  readonly runsMax?: number;
  /** Called after each run with how many are kept so far. */
  readonly onRun?: (kept: number, runs: number) => void;
}

/**
 * Removes faults as long as `fails` says that those which are left make the run fail. `all` itself must fail.
 * Runs are deterministic: none is made twice in one round.
 */
export async function minimise<T>(
  all: readonly T[],
  fails: (kept: readonly T[]) => Promise<boolean>,
  { runsMax = 400, onRun }: MinimiseOptions = {},
): Promise<Minimised<T>> {
  let kept = all;
  let runs = 0;
  const stillFails = async (part: readonly T[]) => {
    runs++;
    const result = await fails(part);
    onRun?.(result ? part.length : kept.length, runs);
    return result;
  };
  if (await stillFails([])) return { kept: [], isMinimal: true, runs };
  for (let parts = 2; kept.length > 1; ) {
    const size = Math.ceil(kept.length / parts);
    const failing = await firstFailing(candidatesOf(kept, size, parts), stillFails, () => runs < runsMax);
    if (failing !== undefined) {
      // A single part that fails is split again; what is left without a part keeps the size of the parts.
      parts = failing.length <= size ? 2 : Math.max(2, parts - 1);
      kept = failing;
    } else if (runs >= runsMax) return { kept, isMinimal: false, runs };
    else if (size === 1) break;
    else parts = Math.min(kept.length, parts * 2);
  }
  return { kept, isMinimal: true, runs };
}

/** The parts themselves, then everything without each of them; of two parts each is the other's complement. */
function* candidatesOf<T>(kept: readonly T[], size: number, parts: number): Generator<readonly T[]> {
  for (let from = 0; from < kept.length; from += size) yield kept.slice(from, from + size);
  if (parts === 2) return;
  for (let from = 0; from < kept.length; from += size) {
    yield [...kept.slice(0, from), ...kept.slice(from + size)];
  }
}

async function firstFailing<T>(
  candidates: Iterable<readonly T[]>,
  fails: (part: readonly T[]) => Promise<boolean>,
  mayRun: () => boolean,
): Promise<readonly T[] | undefined> {
  for (const part of candidates) {
    if (!mayRun()) return undefined;
    if (await fails(part)) return part;
  }
  return undefined;
}
