/** Plays small worlds of the bundle that it is in, and sends to its parent the first that breaks the contract. */
import { simulateSmallWorld } from "../../../../packages/simulation/src/index.ts";

/** How a search ended. */
export interface SearchOutcome {
  /** How many worlds were played. */
  readonly played: number;
  /** The seed of the world that broke the contract, and how; undefined where none did. */
  readonly found?: { readonly seed: number; readonly violation: string };
}

/** Plays the worlds of these seeds, until one breaks the contract. */
export async function searchSeeds(seeds: readonly number[]): Promise<void> {
  let played = 0;
  const end = (violation?: string): void => {
    const seed = seeds[played - 1];
    const found = seed === undefined || violation === undefined ? {} : { found: { seed, violation } };
    process.send?.({ played, ...found } satisfies SearchOutcome, () => process.exit(0));
  };
  process.on("disconnect", () => process.exit(1)); // Its parent is gone.
  process.on("unhandledRejection", (reason) => end(`unhandled: ${String(reason)}`));
  for (const seed of seeds) {
    played++;
    const { violations } = await simulateSmallWorld({ seed });
    if (violations.length > 0) return end(violations[0]);
  }
  end();
}
