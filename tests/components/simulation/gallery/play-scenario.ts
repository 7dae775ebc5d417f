/** Plays a scenario in a process of its own, from a bundle of the sources in which at most one text is changed. */
import { runChanged } from "./changed-program.ts";
import { changesOf, type Mutant, repository, type Scenario } from "./mutant.ts";
import type { ScenarioOutcome } from "./scenario-program.ts";

/** How a scenario ended, and how long that took. */
export interface Played extends ScenarioOutcome {
  readonly tookMs: number;
}

/**
 * Plays the scenario on the sources, or on those with the mutant in them.
 * @throws Error where the mutant does not apply, or the program does not load or does not end
 */
export function playScenario({ file, test = "" }: Scenario, mutant?: Mutant): Promise<Played> {
  const load = `() => import(${JSON.stringify(`${repository}${file}`)})`;
  return runChanged<ScenarioOutcome>({
    contents: `import { runScenario } from "./scenario-program.ts";\nawait runScenario(${JSON.stringify(test)}, ${load});`,
    changes: changesOf(mutant),
  });
}
