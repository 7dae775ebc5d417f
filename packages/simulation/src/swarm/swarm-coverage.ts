/** What a set of worlds has reached. */
import { clusterPlugins } from "@longshore/local";
import { faultKinds, operationKinds } from "./swarm-plan.ts";
import type { WorldResult } from "./world-result.ts";

/** How often each kind of fault and operation happened, over all worlds, and each plugin was there. */
export interface SwarmCoverage {
  readonly counts: ReadonlyMap<string, number>;
  /** The names that were never reached. */
  readonly never: readonly string[];
}

/** Sums up the counters of the worlds. */
export function coverage(results: readonly Pick<WorldResult, "counters" | "plan">[]): SwarmCoverage {
  const names = [...faultKinds, ...operationKinds, ...clusterPlugins.map(({ name }) => `plugin ${name}`)];
  const counts = new Map<string, number>(names.map((name) => [name, 0]));
  for (const { counters, plan } of results) {
    for (const [name, count] of counters) counts.set(name, (counts.get(name) ?? 0) + count);
    for (const plugin of plan.plugins) {
      counts.set(`plugin ${plugin}`, (counts.get(`plugin ${plugin}`) ?? 0) + 1);
    }
  }
  return { counts, never: names.filter((name) => counts.get(name) === 0) };
}
