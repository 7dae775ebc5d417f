/** Plays small worlds of the bundle that it is in, and sends to its parent which of them a mutant could change. */
import { simulateSmallWorld } from "../../../../packages/simulation/src/index.ts";
import { watchedBy } from "./watched.ts";

/** The seeds in which the condition of a mutant has held, by the names of the mutants; those that never did are left out. */
export interface ReachOutcome {
  readonly seedsOf: Readonly<Record<string, readonly number[]>>;
}

/** Plays the seeds from 1 to `last` with the conditions watched. */
export async function reachSeeds(last: number): Promise<void> {
  const seedsOf = new Map<string, number[]>();
  let seed = 0;
  Object.assign(globalThis, {
    [watchedBy]: (name: string, holds: unknown): unknown => {
      const seeds = seedsOf.get(name) ?? [];
      if (holds && seeds.at(-1) !== seed) seedsOf.set(name, [...seeds, seed]);
      return holds;
    },
  });
  process.on("disconnect", () => process.exit(1)); // Its parent is gone.
  while (seed < last) {
    seed++;
    await simulateSmallWorld({ seed });
  }
  process.send?.({ seedsOf: Object.fromEntries(seedsOf) } satisfies ReachOutcome, () => process.exit(0));
}
