/** What a set of worlds has reached. */
import { clusterPlugins } from "@longshore/local";
import { faultKinds, operationKinds, volumeKinds } from "./swarm-plan.ts";
import type { WorldResult } from "./world-result.ts";

/** How often each kind of fault and operation happened, over all worlds, and in how many each plugin and kind of volume was there. */
export interface SwarmCoverage {
  readonly counts: Readonly<Record<string, number>>;
  /** The names that were never reached. */
  readonly never: readonly string[];
}

/** Sums up the counters of the worlds. */
export function coverage(results: readonly Pick<WorldResult, "counters" | "plan">[]): SwarmCoverage {
  const plugins = clusterPlugins.map(({ name }) => `plugin ${name}`);
  const names = [...faultKinds, ...operationKinds, ...volumeKinds, ...plugins];
  const counts = Object.fromEntries(names.map((name) => [name, 0]));
  for (const { counters, plan } of results) {
    const reached = [
      ...Object.entries(counters),
      ...plan.plugins.map((name) => [`plugin ${name}`, 1] as const),
    ];
    for (const [name, count] of reached) counts[name] = (counts[name] ?? 0) + count;
  }
  return { counts, never: names.filter((name) => counts[name] === 0) };
}
