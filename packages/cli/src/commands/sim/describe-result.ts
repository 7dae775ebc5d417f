/** The results of simulations, in words. */
import type { SimulationResult } from "@longshore/simulation";
import pc from "picocolors";
import type { MinimisedSeed } from "./minimised-seed.ts";
import { type World, worldFlags } from "./world.ts";

/** One seed's result. */
export function describedResult(result: SimulationResult, world: World): string {
  const { seed, crashes, faults, steps, acknowledgedWrites, elapsedMs, traceHash, violations } = result;
  const verdict = violations.length === 0 ? pc.green("kept the contract") : pc.red("broke the contract");
  const minutes = (elapsedMs / 60_000).toFixed(1);
  const lines = [
    `seed ${seed} ${verdict}`,
    `  ${steps} steps, ${crashes} crashes, ${faults} faults, ${acknowledgedWrites} acknowledged writes in ${minutes} simulated minutes; trace ${traceHash}`,
    ...violations.map((violation) => `  ${violation}`),
  ];
  if (violations.length > 0) {
    lines.push(`  replay: ${["longshore sim --seed", seed, ...worldFlags(world), "--trace"].join(" ")}`);
  }
  return `${lines.join("\n")}\n`;
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
