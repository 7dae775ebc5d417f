/** `longshore sim`: crossings under seeded crashes and lost replies, replayed by their seed. */
import { type SimulationResult, simulateCrossing } from "@longshore/simulation";
import type { Command } from "commander";
import pc from "picocolors";
import { exitCodes, interruptible } from "../exit.ts";
import { wholeNumber } from "../flags.ts";
import { createProgress } from "../terminal.ts";

interface SimFlags {
  readonly seed: string;
  readonly seeds: string;
  readonly nodes: string;
  readonly trace?: boolean;
  readonly json?: boolean;
}

const seedMax = 2 ** 32 - 1;

/** Adds the verb. */
export function registerSimCommand(program: Command): void {
  program
    .command("sim")
    .description("simulate crossings under crashes and lost replies, and check the contract at every step")
    .option("--seed <number>", "the first seed", "1")
    .option("--seeds <count>", "how many seeds", "1")
    .option("--nodes <count>", "nodes of the simulated cluster", "2")
    .option("--trace", "print every step")
    .option("--json", "print each seed's result as a line of JSON")
    .addHelpText("after", "\nThe same seed gives the same run. Exits 1 when the contract was broken.")
    .action((flags: SimFlags) => interruptible((signal) => simulate(flags, signal)));
}

async function simulate(flags: SimFlags, signal: AbortSignal): Promise<void> {
  const first = wholeNumber("--seed", flags.seed, 0, seedMax);
  const count = wholeNumber("--seeds", flags.seeds, 1, seedMax);
  const nodes = wholeNumber("--nodes", flags.nodes, 1, 20);
  const progress = createProgress(flags.json);
  let failed = 0;
  for (let seed = first; seed < first + count; seed++) {
    signal.throwIfAborted();
    progress.status(`… seed ${seed}`);
    const result = await simulateCrossing({
      seed,
      nodes,
      ...(flags.trace === true ? { onTrace: (line: string) => void process.stdout.write(`${line}\n`) } : {}),
    });
    progress.clear();
    if (result.violations.length > 0) failed++;
    if (flags.json === true) process.stdout.write(`${JSON.stringify(result)}\n`);
    else if (count === 1 || result.violations.length > 0) process.stdout.write(described(result, nodes));
  }
  if (flags.json !== true && count > 1) {
    process.stdout.write(`${count - failed} of ${count} seeds kept the contract\n`);
  }
  if (failed > 0) process.exitCode = exitCodes.failed;
}

function described(result: SimulationResult, nodes: number): string {
  const { seed, crashes, faults, steps, acknowledgedWrites, elapsedMs, traceHash, violations } = result;
  const verdict = violations.length === 0 ? pc.green("kept the contract") : pc.red("broke the contract");
  const minutes = (elapsedMs / 60_000).toFixed(1);
  const lines = [
    `seed ${seed} ${verdict}`,
    `  ${steps} steps, ${crashes} crashes, ${faults} faults, ${acknowledgedWrites} acknowledged writes in ${minutes} simulated minutes; trace ${traceHash}`,
    ...violations.map((violation) => `  ${violation}`),
  ];
  if (violations.length > 0) {
    lines.push(`  replay: longshore sim --seed ${seed}${nodes === 2 ? "" : ` --nodes ${nodes}`} --trace`);
  }
  return `${lines.join("\n")}\n`;
}
