/**
 * The gallery of bugs: brings each back in turn and plays the scenario that is to catch it. With `--search` no scenario is played:
 * small worlds of the simulation, drawn at random, are to find it.
 *
 *     npm run gallery [-- --only NAME] [-- --upstream] [-- --search [--seeds 60]]
 */
import { parseArgs } from "node:util";
import { mutants, upstreamMutants } from "../tests/components/simulation/gallery/mutants/index.ts";
import { type PlayedMutant, playGallery } from "../tests/components/simulation/gallery/play-gallery.ts";
import {
  type SearchedMutant,
  searchGallery,
  searchSummary,
} from "../tests/components/simulation/gallery/search-gallery.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    upstream: { type: "boolean" },
    search: { type: "boolean" },
    seeds: { type: "string", default: "60" },
  },
});
const issues = new Map(upstreamMutants.map(({ name, upstream }) => [name, upstream]));
const chosen = (values.upstream === true ? upstreamMutants : mutants).filter(
  ({ name }) => values.only === undefined || values.only === name || values.only === issues.get(name),
);
if (chosen.length === 0) {
  console.error(
    `no mutant is named ${values.only}: see docs/gallery.md and tests/components/simulation/gallery/mutants`,
  );
  process.exit(2);
}
const seeds = Number(values.seeds);
if (!Number.isInteger(seeds) || seeds < 1) {
  console.error(`--seeds: "${values.seeds}" is not a whole number from 1`);
  process.exit(2);
}
if (values.search === true) {
  console.log(searchSummary(await searchGallery(chosen, seeds, printSearched)));
} else {
  process.exitCode = (await play()) ? 0 : 1;
}

/** @returns whether every mutant is caught, by a scenario that passes without it */
async function play(): Promise<boolean> {
  const report = await playGallery("mutants", chosen, printPlayed);
  for (const { scenario, failure } of report.brokenScenarios) {
    console.log(`fails without any change: ${scenario.file} ${scenario.test ?? ""}: ${failure}`);
  }
  for (const { name, story } of report.survivors) console.log(`survives: ${name}: ${story}`);
  console.log(report.summary);
  return report.survivors.length + report.brokenScenarios.length === 0;
}

function printPlayed({ mutant: { name }, failure, tookMs }: PlayedMutant): void {
  const [first = ""] = (failure ?? "SURVIVES").split("\n");
  console.log(`${heading(name)} ${String(tookMs).padStart(6)} ms  ${first.slice(0, 160)}`);
}

function printSearched({ mutant: { name }, ended, played, found }: SearchedMutant): void {
  const [first = ""] = (found === undefined ? "" : `seed ${found.seed}: ${found.violation}`).split("\n");
  console.log(
    `${heading(name)} ${ended.padEnd(11)} ${String(played).padStart(4)} worlds  ${first.slice(0, 160)}`,
  );
}

function heading(name: string): string {
  return `${(issues.get(name) ?? "planted").padEnd(30)} ${name.padEnd(62)}`;
}
