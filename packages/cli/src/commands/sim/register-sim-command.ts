/** `longshore sim`: crossings under seeded crashes and lost replies, replayed by their seed. */
import { type SimulationResult, simulateCrossing, violationTrace } from "@longshore/simulation";
import type { Command } from "commander";
import pc from "picocolors";
import { exitCodes, interruptible } from "../../exit.ts";
import { wholeNumber, withForms } from "../../flags.ts";
import { createProgress, type Progress } from "../../terminal.ts";
import { registerSkewCommand } from "./register-skew-command.ts";
import { type SeedRange, seedRange, shares } from "./seed-range.ts";
import { inWorkers } from "./workers.ts";

interface SimFlags {
  readonly seed?: string;
  readonly seeds: string;
  readonly nodes: string;
  readonly workers: string;
  readonly trace?: boolean;
  readonly json?: boolean;
}

const workersMax = 64;

/** Adds the verb. */
export function registerSimCommand(program: Command): void {
  // The verb below it has flags of the same names: what stands after a verb is that verb's.
  const sim = program.enablePositionalOptions().command("sim");
  registerSkewCommand(sim);
  withForms(sim, ["text", "json"])
    .description("simulate crossings under crashes and lost replies, and check the contract at every step")
    .option("--seed <number>", "the first seed (default: 1)")
    .option("--seeds <count|A..B>", "how many seeds, or from which to which", "1")
    .option("--workers <count>", "processes that simulate at the same time", "1")
    .option("--nodes <count>", "nodes of the simulated cluster", "2")
    .option("--trace", "print every step")
    .addHelpText(
      "after",
      "\nWith -o json each seed's result is a line of JSON.\nThe same seed gives the same run. Exits 1 when the contract was broken, and prints the events of the first seed that did.",
    )
    .action((flags: SimFlags) => interruptible((signal) => simulate(flags, signal)));
}

async function simulate(flags: SimFlags, signal: AbortSignal): Promise<void> {
  const range = seedRange(flags.seed, flags.seeds);
  const nodes = wholeNumber("--nodes", flags.nodes, 1, 20);
  const workers = wholeNumber("--workers", flags.workers, 1, workersMax);
  const sweep = new Sweep(range, nodes, flags.json === true);
  if (workers === 1 || flags.trace === true) await oneByOne(range, nodes, flags, sweep, signal);
  else {
    const onResult = (result: SimulationResult) => sweep.add(result);
    await inWorkers({ shares: shares(range, workers), workers, nodes, onResult }, signal);
  }
  await sweep.end();
}

async function oneByOne(
  { first, last }: SeedRange,
  nodes: number,
  flags: SimFlags,
  sweep: Sweep,
  signal: AbortSignal,
): Promise<void> {
  const onTrace = (line: string) => void process.stdout.write(`${line}\n`);
  for (let seed = first; seed <= last; seed++) {
    signal.throwIfAborted();
    sweep.add(await simulateCrossing({ seed, nodes, ...(flags.trace === true ? { onTrace } : {}) }));
    // Timers and signals get their turn: a simulation on a virtual clock may leave them none.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The results of the seeds, printed as they come. */
class Sweep {
  readonly #range: SeedRange;
  readonly #nodes: number;
  readonly #isJson: boolean;
  readonly #progress: Progress;
  #done = 0;
  readonly #failed: number[] = [];

  constructor(range: SeedRange, nodes: number, isJson: boolean) {
    this.#range = range;
    this.#nodes = nodes;
    this.#isJson = isJson;
    this.#progress = createProgress(isJson);
    this.#showProgress();
  }

  get #count(): number {
    return this.#range.last - this.#range.first + 1;
  }

  add(result: SimulationResult): void {
    this.#done++;
    const isBroken = result.violations.length > 0;
    if (isBroken) this.#failed.push(result.seed);
    this.#progress.clear();
    if (this.#isJson) process.stdout.write(`${JSON.stringify(result)}\n`);
    else if (this.#count === 1 || isBroken) process.stdout.write(described(result, this.#nodes));
    if (this.#done < this.#count) this.#showProgress();
  }

  async end(): Promise<void> {
    const [seed] = this.#failed.sort((a, b) => a - b);
    if (!this.#isJson && this.#count > 1) {
      process.stdout.write(`${this.#done - this.#failed.length} of ${this.#done} seeds kept the contract\n`);
    }
    if (seed === undefined) return;
    process.exitCode = exitCodes.failed;
    if (this.#isJson) return;
    const trace = await violationTrace({ seed, nodes: this.#nodes });
    process.stdout.write(
      `trace of seed ${seed} up to its first violation:\n${trace.map((line) => `  ${line}\n`).join("")}`,
    );
  }

  #showProgress(): void {
    const broken = this.#failed.length > 0 ? `, ${this.#failed.length} broke the contract` : "";
    const text = `… ${this.#done} of ${this.#count} seeds${broken}`;
    const isMark = this.#count >= 100 && this.#done > 0 && this.#done % Math.ceil(this.#count / 20) === 0;
    if (isMark) this.#progress.line(text);
    else this.#progress.status(text);
  }
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
