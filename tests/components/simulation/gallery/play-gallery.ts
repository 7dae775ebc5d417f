/** Plays mutants, each in the scenario that is to catch it, and the same scenarios without any change. */
import { forEach } from "./for-each.ts";
import type { Mutant, Scenario } from "./mutant.ts";
import { type Played, playScenario } from "./play-scenario.ts";

/** How it went with one mutant; `caught`: its scenario has failed. */
export interface PlayedMutant extends Played {
  readonly mutant: Mutant;
}

/** How it went. */
export interface GalleryReport {
  readonly mutants: readonly PlayedMutant[];
  readonly survivors: readonly Mutant[];
  /** Scenarios that fail without any change: they prove nothing. */
  readonly brokenScenarios: readonly { readonly scenario: Scenario; readonly failure: string }[];
  /** e.g. `upstream bugs: 32/32 caught` */
  readonly summary: string;
}

/**
 * Plays them; `onPlayed` is called after each mutant.
 * @throws Error where a mutant does not apply, or the program with it does not load or does not end
 */
export async function playGallery(
  what: string,
  mutants: readonly Mutant[],
  onPlayed: (played: PlayedMutant) => void = () => {},
): Promise<GalleryReport> {
  const brokenScenarios: { scenario: Scenario; failure: string }[] = [];
  await forEach(scenariosOf(mutants), async (scenario) => {
    const { failure } = await playScenario(scenario);
    if (failure !== undefined) brokenScenarios.push({ scenario, failure });
  });
  const played: PlayedMutant[] = [];
  await forEach(mutants, async (mutant) => {
    const one = { mutant, ...(await playScenario(mutant.caughtBy, mutant)) };
    played.push(one);
    onPlayed(one);
  });
  const survivors = played.filter(({ failure }) => failure === undefined).map(({ mutant }) => mutant);
  const summary = `${what}: ${played.length - survivors.length}/${played.length} caught`;
  return { mutants: played, survivors, brokenScenarios, summary };
}

function scenariosOf(mutants: readonly Mutant[]): readonly Scenario[] {
  const byKey = new Map(mutants.map(({ caughtBy }) => [`${caughtBy.file} ${caughtBy.test ?? ""}`, caughtBy]));
  return [...byKey.values()];
}
