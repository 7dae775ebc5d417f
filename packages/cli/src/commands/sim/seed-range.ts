/** Which seeds to simulate, and how they are shared out. */
import { UsageError } from "../../exit.ts";
import { wholeNumber } from "../../flags.ts";

const seedMax = 2 ** 32 - 1;
/** Seeds that a worker takes at a time: enough to make its start cheap, few enough to keep all at work. */
const shareMax = 50;

/** Seeds from the first to the last, both included. */
export interface SeedRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads `--seed N --seeds COUNT`, or `--seeds A..B`.
 * @throws UsageError
 */
export function seedRange(seed: string | undefined, seeds: string): SeedRange {
  const [from, to, ...more] = seeds.split("..");
  if (to === undefined) {
    const first = wholeNumber("--seed", seed ?? "1", 0, seedMax);
    const count = wholeNumber("--seeds", seeds, 1, seedMax);
    return { first, last: Math.min(first + count - 1, seedMax) };
  }
  if (more.length > 0) throw new UsageError(`--seeds: "${seeds}" is not a range: write it as 200000..205000`);
  if (seed !== undefined) throw new UsageError("--seed: --seeds is a range already: leave one of them out");
  const first = wholeNumber("--seeds", from ?? "", 0, seedMax);
  return { first, last: wholeNumber("--seeds", to, first, seedMax) };
}

/** The range in parts, in order, so that each worker has something to do. */
export function shares({ first, last }: SeedRange, workers: number): readonly SeedRange[] {
  const size = Math.max(1, Math.min(shareMax, Math.ceil((last - first + 1) / workers)));
  const parts: SeedRange[] = [];
  for (let from = first; from <= last; from += size) {
    parts.push({ first: from, last: Math.min(from + size - 1, last) });
  }
  return parts;
}
