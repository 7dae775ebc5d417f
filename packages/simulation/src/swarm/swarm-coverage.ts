/** What a set of worlds has reached. */
import { clusterPlugins } from "@longshore/local";
import { faultKinds, operationKinds, volumeKinds } from "./swarm-plan.ts";
import type { WorldResult } from "./world-result.ts";

/** How much of one sort was reached, of all that was there in one world or another. */
export interface Reach {
  readonly reached: number;
  readonly of: number;
  /** The names of what was never reached, in their order. */
  readonly never: readonly string[];
}

/** How often each kind of fault and operation happened, over all worlds, and in how many each plugin and kind of volume was there. */
export interface SwarmCoverage {
  readonly counts: Readonly<Record<string, number>>;
  /** The names that were never reached. */
  readonly never: readonly string[];
  /** Steps of decisions, of those controllers that ran. */
  readonly steps: Reach;
  /** Calls at which a component crashed, of those that were ever made. */
  readonly crashPoints: Reach;
}

/** Sums up the counters of the worlds. */
export function coverage(
  results: readonly Pick<WorldResult, "counters" | "plan" | "reach">[],
): SwarmCoverage {
  const plugins = clusterPlugins.map(({ name }) => `plugin ${name}`);
  const names = [...faultKinds, ...operationKinds, ...volumeKinds, ...plugins];
  const counts = Object.fromEntries(names.map((name) => [name, 0]));
  const steps: Counts = {};
  const crashPoints: Counts = {};
  for (const { counters, plan, reach } of results) {
    add(counts, { ...counters, ...Object.fromEntries(plan.plugins.map((name) => [`plugin ${name}`, 1])) });
    add(steps, reach.steps);
    add(crashPoints, reach.crashPoints);
  }
  const never = names.filter((name) => counts[name] === 0);
  return { counts, never, steps: reachOf(steps), crashPoints: reachOf(crashPoints) };
}

type Counts = Record<string, number>;

function add(sums: Counts, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
}

function reachOf(counts: Counts): Reach {
  const names = Object.keys(counts);
  const never = names.filter((name) => counts[name] === 0).sort();
  return { reached: names.length - never.length, of: names.length, never };
}
