/** `longshore sim`: crossings under seeded crashes and lost replies, replayed by their seed. */
import { writeFile } from "node:fs/promises";
import {
  DiskTimeline,
  type SimulationOptions,
  type SimulationResult,
  simulateCrossing,
  timelinePage,
  traceLine,
  violationTrace,
} from "@longshore/simulation";
import type { Command } from "commander";
import { exitCodes, interruptible, UsageError } from "../../exit.ts";
import { wholeNumber, withForms } from "../../flags.ts";
import { createProgress, type Progress } from "../../terminal.ts";
import { describedMinimum, describedResult } from "./describe-result.ts";
import { minimisedSeed } from "./minimised-seed.ts";
import { registerSkewCommand } from "./register-skew-command.ts";
import { type SeedRange, seedRange, shares } from "./seed-range.ts";
import { inWorkers } from "./workers.ts";
import { hourMs, type World } from "./world.ts";

interface SimFlags {
  readonly seed?: string;
  readonly seeds: string;
  readonly nodes: string;
  readonly restHours?: string;
  readonly workers: string;
  readonly trace?: boolean;
  readonly until?: string;
  readonly minimise?: boolean;
  readonly timeline?: string;
  readonly json?: boolean;
}

const workersMax = 64;
/** Longest rest, in hours: a year. */
const restHoursMax = 8_760;

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
    .option("--rest-hours <hours>", "how long the cluster rests between the crossing and its way back")
    .option("--trace", "print what happens as it happens")
    .option(
      "--until <step>",
      "end after this step and print the state of the cluster; one seed, with --trace",
    )
    .option(
      "--minimise",
      "find the fewest faults with which the first seed that broke the contract still does",
    )
    .option("--timeline <file>", "write a page that shows who held which disk when; one seed")
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
  const rest =
    flags.restHours === undefined
      ? {}
      : { restMs: hourMs * wholeNumber("--rest-hours", flags.restHours, 1, restHoursMax) };
  const world: World = { nodes, ...rest };
  requireOneSeed(range, flags);
  const sweep = new Sweep(range, world, flags);
  if (workers === 1 || flags.trace === true) await oneByOne(range, world, flags, sweep, signal);
  else {
    const onResult = (result: SimulationResult) => sweep.add(result);
    await inWorkers({ shares: shares(range, workers), workers, world, onResult }, signal);
  }
  await sweep.end(signal);
}

/** @throws UsageError for flags that are about one run when there are several */
function requireOneSeed({ first, last }: SeedRange, { until, timeline, trace }: SimFlags): void {
  for (const [flag, value] of Object.entries({ "--until": until, "--timeline": timeline })) {
    if (value !== undefined && first !== last) {
      throw new UsageError(`${flag}: it is about one run: name one seed with --seed`);
    }
  }
  if (until !== undefined && trace !== true) {
    throw new UsageError("--until: without --trace nothing would be printed: add --trace");
  }
}

async function oneByOne(
  { first, last }: SeedRange,
  world: World,
  flags: SimFlags,
  sweep: Sweep,
  signal: AbortSignal,
): Promise<void> {
  const onTrace: SimulationOptions["onTrace"] = (event) => void process.stdout.write(`${traceLine(event)}\n`);
  const until =
    flags.until === undefined
      ? {}
      : { until: wholeNumber("--until", flags.until, 1, Number.MAX_SAFE_INTEGER) };
  const timeline = flags.timeline === undefined ? undefined : new DiskTimeline();
  for (let seed = first; seed <= last; seed++) {
    signal.throwIfAborted();
    const result = await simulateCrossing({
      ...world,
      ...until,
      seed,
      ...(flags.trace === true ? { onTrace } : {}),
      ...(timeline === undefined ? {} : { timeline }),
    });
    if (timeline !== undefined && flags.timeline !== undefined) {
      const title = `Seed ${seed}, ${world.nodes} nodes: who held which disk when`;
      await writeFile(flags.timeline, timelinePage(timeline, { title, violations: result.violations }));
    }
    sweep.add(result);
    // Timers and signals get their turn: a simulation on a virtual clock may leave them none.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The results of the seeds, printed as they come. */
class Sweep {
  readonly #range: SeedRange;
  readonly #world: World;
  readonly #isJson: boolean;
  readonly #isMinimised: boolean;
  readonly #progress: Progress;
  #done = 0;
  readonly #failed: SimulationResult[] = [];

  constructor(range: SeedRange, world: World, flags: Pick<SimFlags, "json" | "minimise">) {
    this.#range = range;
    this.#world = world;
    this.#isJson = flags.json === true;
    this.#isMinimised = flags.minimise === true;
    this.#progress = createProgress(this.#isJson);
    this.#showProgress();
  }

  get #count(): number {
    return this.#range.last - this.#range.first + 1;
  }

  add(result: SimulationResult): void {
    this.#done++;
    const isBroken = result.violations.length > 0;
    if (isBroken) this.#failed.push(result);
    this.#progress.clear();
    if (this.#isJson) process.stdout.write(`${resultJson(result)}\n`);
    else if (this.#count === 1 || isBroken) process.stdout.write(describedResult(result, this.#world));
    if (this.#done < this.#count) this.#showProgress();
  }

  async end(signal: AbortSignal): Promise<void> {
    const [first] = this.#failed.sort((a, b) => a.seed - b.seed);
    if (!this.#isJson && this.#count > 1) {
      process.stdout.write(`${this.#done - this.#failed.length} of ${this.#done} seeds kept the contract\n`);
    }
    if (first === undefined) return;
    process.exitCode = exitCodes.failed;
    if (this.#isMinimised) {
      const minimum = await minimisedSeed(first, this.#world, this.#progress, signal);
      process.stdout.write(
        this.#isJson ? `${JSON.stringify(minimum)}\n` : describedMinimum(first.seed, minimum),
      );
      return;
    }
    if (this.#isJson) return;
    const trace = await violationTrace({ ...this.#world, seed: first.seed });
    process.stdout.write(
      `trace of seed ${first.seed} up to its first violation:\n${trace.map((line) => `  ${line}\n`).join("")}`,
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

/** The faults of a run that kept the contract are of no interest, and many. */
function resultJson({ struck, ...result }: SimulationResult): string {
  return JSON.stringify(result.violations.length === 0 ? result : { ...result, struck });
}
