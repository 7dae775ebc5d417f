/**
 * Checks the report of the demo: nothing lost, nothing stranded, no in-tree code after the crossing.
 *
 *   tsx scripts/check-demo-report.ts REPORT.json
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What is wrong with a report, one sentence each; empty when it is as it must be. */
export function faultsOf(report: unknown): string[] {
  if (typeof report !== "object" || report === null) return ["the report is not an object"];
  const faults: string[] = [];
  const must = (holds: boolean, sentence: string) => {
    if (!holds) faults.push(sentence);
  };
  const fields = report as Record<string, unknown>;
  for (const field of ["lostWrites", "strandedAttachments", "inTreeCallsAfterMigration"]) {
    must(fields[field] === 0, `${field} is ${fields[field]}, not 0`);
  }
  must(Number(fields.acknowledgedWrites) > 0, `acknowledgedWrites is ${fields.acknowledgedWrites}`);
  must(Number(fields.elapsedMs) > 0, `elapsedMs is ${fields.elapsedMs}`);

  const steps = list(fields.steps);
  must(steps.length > 0, "steps is empty");
  for (const { name, ms } of steps) {
    must(typeof name === "string" && typeof ms === "number", `a step is {name: ${name}, ms: ${ms}}`);
  }
  const volumes = list(fields.volumes);
  must(volumes.length === 3, `volumes holds ${volumes.length}, not 3`);
  for (const { pv, inTreeHandle, csiHandle, nodes } of volumes) {
    must(typeof pv === "string" && pv !== "", `a volume has the pv ${pv}`);
    must(typeof inTreeHandle === "string" && inTreeHandle !== "", `volume ${pv} has no inTreeHandle`);
    must(typeof csiHandle === "string" && csiHandle !== "", `volume ${pv} has no csiHandle`);
    must(Array.isArray(nodes) && nodes.length > 0, `volume ${pv} was on no node`);
  }
  return faults;
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value : [];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = process.argv[2];
  if (path === undefined) throw new Error("usage: check-demo-report.ts REPORT.json");
  const report: unknown = JSON.parse(readFileSync(path, "utf8"));
  const faults = faultsOf(report);
  for (const fault of faults) process.stderr.write(`${path}: ${fault}\n`);
  if (faults.length === 0) process.stdout.write(`${path}: the crossing kept its promises\n`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
