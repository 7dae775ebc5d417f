/**
 * The gallery of bugs: brings each back in turn and plays the scenario that is to catch it.
 *
 *     npm run gallery [-- --only NAME] [-- --upstream]
 */
import { parseArgs } from "node:util";
import { mutants, upstreamMutants } from "../tests/components/simulation/gallery/mutants/index.ts";
import { type PlayedMutant, playGallery } from "../tests/components/simulation/gallery/play-gallery.ts";

const { values } = parseArgs({ options: { only: { type: "string" }, upstream: { type: "boolean" } } });
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
const report = await playGallery("mutants", chosen, printLine);
for (const { scenario, failure } of report.brokenScenarios) {
  console.log(`fails without any change: ${scenario.file} ${scenario.test ?? ""}: ${failure}`);
}
for (const { name, story } of report.survivors) console.log(`survives: ${name}: ${story}`);
console.log(report.summary);
process.exitCode = report.survivors.length + report.brokenScenarios.length === 0 ? 0 : 1;

function printLine({ mutant: { name }, failure, tookMs }: PlayedMutant): void {
  const [first = ""] = (failure ?? "SURVIVES").split("\n");
  const issue = (issues.get(name) ?? "planted").padEnd(30);
  console.log(`${issue} ${name.padEnd(62)} ${String(tookMs).padStart(6)} ms  ${first.slice(0, 160)}`);
}
