/**
 * Small worlds of many seeds: 5,000, or as many as `LONGSHORE_SMALL_SEEDS` says; with `LONGSHORE_SMALL_SECONDS` those of them that are
 * begun within that time, in each file. A thread runs one file of tests at a time, so the seeds are shared out over files.
 */
import { systemClock } from "@longshore/runtime";
import { expect } from "vitest";
import { simulateSmallWorld } from "../swarm/small-world.ts";

/** How many files share the seeds. */
const files = 2;

/** Plays each seed from `first` on that is this file's; prints how many, how many broke the contract, and how long it took. */
export async function playSmallWorlds(first: 1 | 2): Promise<void> {
  const seeds = Number(process.env.LONGSHORE_SMALL_SEEDS ?? "5000");
  const seconds = Number(process.env.LONGSHORE_SMALL_SECONDS ?? "Infinity");
  const fromMs = systemClock.monotonicMs();
  const secondsSince = () => (systemClock.monotonicMs() - fromMs) / 1000;
  const broken: Record<number, readonly string[]> = {};
  let played = 0;
  for (let seed: number = first; seed <= seeds && secondsSince() < seconds; seed += files) {
    const { violations } = await simulateSmallWorld({ seed });
    if (violations.length > 0) broken[seed] = violations;
    played++;
    // The runner of the tests gets its turn: a simulation on a virtual clock leaves it none.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const took = secondsSince().toFixed(0);
  console.log(`${played} small worlds in ${took} s: ${Object.keys(broken).length} broke the contract`);
  expect(played).toBeGreaterThan(0);
  expect(broken, "replay with: longshore sim --world small --seed N --trace").toEqual({});
}
