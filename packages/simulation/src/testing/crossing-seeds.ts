/**
 * The crossing over many seeds: 60, or as many as `LONGSHORE_SIM_SEEDS` says. A thread runs one file of tests at a time, so the
 * seeds are shared out over files.
 */
import { expect } from "vitest";
import { simulateCrossing } from "../simulate-crossing.ts";

/** How many files share the seeds. */
const files = 2;

/** Crosses with each seed from `first` on that is this file's. */
export async function crossWithSeeds(first: 1 | 2): Promise<void> {
  const seeds = Number(process.env.LONGSHORE_SIM_SEEDS ?? "60");
  for (let seed: number = first; seed <= seeds; seed += files) {
    const result = await simulateCrossing({ seed });
    expect(result.violations, `replay with: longshore sim --seed ${seed}`).toEqual([]);
  }
}
