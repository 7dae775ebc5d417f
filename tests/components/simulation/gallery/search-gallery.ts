/** Searches for mutants in small worlds that are drawn at random: what no scenario was written for is found so, or not. */
import { NotInProgramError, runChanged } from "./changed-program.ts";
import { forEach } from "./for-each.ts";
import { changesOf, type Mutant } from "./mutant.ts";
import type { ReachOutcome } from "./reach-program.ts";
import type { SearchOutcome } from "./search-program.ts";
import { watchedSources } from "./watched.ts";

/** How the search for one mutant ended. */
export interface SearchedMutant extends SearchOutcome {
  readonly mutant: Mutant;
  /**
   * `found`: a world broke the contract; `not found`: none did; `not reached`: what the mutant changes was never decided in any;
   * `elsewhere`: its source is no part of these worlds.
   */
  readonly ended: "found" | "not found" | "not reached" | "elsewhere";
}

/**
 * Searches for each in the small worlds of the seeds from 1 to `seeds`; `onSearched` is called after each mutant. First all of
 * them are played without a mutant: one that takes a condition away is searched for only where the condition holds.
 *
 * @throws Error where the program does not load, or does not end
 */
export async function searchGallery(
  mutants: readonly Mutant[],
  seeds: number,
  onSearched: (searched: SearchedMutant) => void = () => {},
): Promise<readonly SearchedMutant[]> {
  const { seedsOf } = await reach(mutants, seeds);
  const all = Array.from({ length: seeds }, (_, at) => at + 1);
  const searched: SearchedMutant[] = [];
  await forEach(mutants, async (mutant) => {
    const reached = mutant.condition === undefined ? all : (seedsOf[mutant.name] ?? []);
    const one = { mutant, ...(await search(mutant, reached)) };
    searched.push(one);
    onSearched(one);
  });
  return searched;
}

/** e.g. `search: 20/33 found; 5 not found, 6 not reached, 2 elsewhere` */
export function searchSummary(searched: readonly SearchedMutant[]): string {
  const count = (ended: SearchedMutant["ended"]) => searched.filter((each) => each.ended === ended).length;
  const others = (["not found", "not reached", "elsewhere"] as const).map(
    (ended) => `${count(ended)} ${ended}`,
  );
  return `search: ${count("found")}/${searched.length} found; ${others.join(", ")}`;
}

function reach(mutants: readonly Mutant[], seeds: number): Promise<ReachOutcome> {
  return runChanged<ReachOutcome>({
    contents: `import { reachSeeds } from "./reach-program.ts";\nawait reachSeeds(${seeds});`,
    changes: watchedSources(mutants),
    mayLackSources: true,
  });
}

async function search(mutant: Mutant, seeds: readonly number[]): Promise<Omit<SearchedMutant, "mutant">> {
  if (seeds.length === 0) return { ended: "not reached", played: 0 };
  try {
    const outcome = await runChanged<SearchOutcome>({
      contents: `import { searchSeeds } from "./search-program.ts";\nawait searchSeeds(${JSON.stringify(seeds)});`,
      changes: changesOf(mutant),
    });
    return { ...outcome, ended: outcome.found === undefined ? "not found" : "found" };
  } catch (error) {
    if (error instanceof NotInProgramError) return { ended: "elsewhere", played: 0 };
    throw error;
  }
}
