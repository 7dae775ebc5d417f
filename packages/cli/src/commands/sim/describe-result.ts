/** The results of simulations, in words and as JSON. */
import { operationKinds, type Reach, type SwarmCoverage } from "@longshore/simulation";
import pc from "picocolors";
import { textTable } from "../../text-table.ts";
import type { MinimisedSeed } from "./minimised-seed.ts";
import type { World, WorldSeedResult } from "./world.ts";

/** One seed's result. */
export function describedResult(result: WorldSeedResult, world: World): string {
  const { seed, steps, elapsedMs, traceHash, violations } = result;
  const verdict = violations.length === 0 ? pc.green("kept the contract") : pc.red("broke the contract");
  const minutes = (elapsedMs / 60_000).toFixed(1);
  const lines = [
    `seed ${seed} ${verdict}`,
    `  ${steps} steps, ${counted(result)} in ${minutes} simulated minutes; trace ${traceHash}`,
    ...violations.map((violation) => `  ${violation}`),
  ];
  if (violations.length > 0) {
    lines.push(`  replay: ${["longshore sim --seed", seed, ...world.flags, "--trace"].join(" ")}`);
  }
  return `${lines.join("\n")}\n`;
}

function counted(result: WorldSeedResult): string {
  if ("deaths" in result) {
    const { crashes, deaths, faults } = result;
    return `${crashes} crashes, ${deaths} deaths of the converting process, ${faults} faults`;
  }
  const writes = `${result.acknowledgedWrites} acknowledged writes`;
  if ("crashes" in result) return `${result.crashes} crashes, ${result.faults} faults, ${writes}`;
  const { counters, struck } = result;
  const operations = operationKinds.reduce((sum, kind) => sum + (counters[kind] ?? 0), 0);
  return `${operations} operations, ${struck.length - operations} faults, ${writes}`;
}

/** The result as a line. The faults of a run that kept the contract are of no interest, and many; what it reached is for the sum. */
export function resultJson({ struck, ...whole }: WorldSeedResult): string {
  const { reach: _, ...result } = "reach" in whole ? whole : { ...whole, reach: undefined };
  return JSON.stringify(result.violations.length === 0 ? result : { ...result, struck });
}

/** The fewest faults, with the trace that they lead to. */
export function describedMinimum(seed: number, minimum: MinimisedSeed): string {
  const { faults, kept, isMinimal, runs, trace } = minimum;
  const most = isMinimal ? "without any one of them the contract is kept" : "more runs may find fewer";
  const lines = [
    `seed ${seed} breaks the contract with ${kept.length} of its ${faults} faults (${runs} runs; ${most}):`,
    ...kept.map((name) => `  ${name}`),
    "trace with these faults only, up to the first violation:",
    ...trace.map((line) => `  ${line}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** How often each kind happened, and what never did. */
export function describedCoverage({ counts, never, steps, crashPoints }: SwarmCoverage): string {
  const rows = Object.entries(counts).map(([name, count]) => [name, String(count)]);
  const verdict = never.length === 0 ? "every kind was reached" : `never reached: ${never.join(", ")}`;
  const reaches = [
    describedReach("steps of decisions", steps),
    describedReach("calls at which a component crashed", crashPoints),
  ];
  return `${textTable([["KIND", "COUNT"], ...rows])}${verdict}\n${reaches.join("")}`;
}

function describedReach(what: string, { reached, of, never }: Reach): string {
  const lines = never.map((name) => `  ${name}\n`).join("");
  return `${what}: ${reached} of ${of}${never.length === 0 ? "\n" : `; never reached:\n${lines}`}`;
}
