/** The results of the seeds, printed as they come. */
import { coverage, violationTrace, type WorldResult } from "@longshore/simulation";
import { exitCodes } from "../../exit.ts";
import { createProgress, type Progress } from "../../terminal.ts";
import { describedCoverage, describedMinimum, describedResult, resultJson } from "./describe-result.ts";
import { minimisedSeed } from "./minimised-seed.ts";
import type { SeedRange } from "./seed-range.ts";
import type { World, WorldSeedResult } from "./world.ts";

/** What is printed beside the results. */
export interface SweepFlags {
  readonly json?: boolean;
  readonly minimise?: boolean;
  readonly coverage?: boolean;
}

/** Seeds of one world. */
export class Sweep {
  readonly #range: SeedRange;
  readonly #world: World;
  readonly #flags: SweepFlags;
  readonly #progress: Progress;
  #done = 0;
  readonly #failed: WorldSeedResult[] = [];
  readonly #reached: Pick<WorldResult, "counters" | "plan" | "reach">[] = [];

  constructor(range: SeedRange, world: World, flags: SweepFlags) {
    this.#range = range;
    this.#world = world;
    this.#flags = flags;
    this.#progress = createProgress(flags.json === true);
    this.#showProgress();
  }

  get #count(): number {
    return this.#range.last - this.#range.first + 1;
  }

  add(result: WorldSeedResult): void {
    this.#done++;
    const isBroken = result.violations.length > 0;
    if (isBroken) this.#failed.push(result);
    if ("counters" in result && this.#flags.coverage === true) {
      const { counters, plan, reach } = result;
      this.#reached.push({ counters, plan, reach });
    }
    this.#progress.clear();
    if (this.#flags.json === true) print(`${resultJson(result)}\n`);
    else if (this.#count === 1 || isBroken) print(describedResult(result, this.#world));
    if (this.#done < this.#count) this.#showProgress();
  }

  /** What there is to say once all are done. */
  async end(signal: AbortSignal): Promise<void> {
    const isJson = this.#flags.json === true;
    if (!isJson && this.#count > 1) {
      print(`${this.#done - this.#failed.length} of ${this.#done} seeds kept the contract\n`);
    }
    if (this.#flags.coverage === true) {
      const reached = coverage(this.#reached);
      print(isJson ? `${JSON.stringify({ coverage: reached })}\n` : describedCoverage(reached));
    }
    const [first] = this.#failed.sort((a, b) => a.seed - b.seed);
    if (first === undefined) return;
    process.exitCode = exitCodes.failed;
    if (this.#flags.minimise === true) {
      const minimum = await minimisedSeed(first, this.#world, this.#progress, signal);
      print(isJson ? `${JSON.stringify(minimum)}\n` : describedMinimum(first.seed, minimum));
      return;
    }
    if (isJson) return;
    const trace = await violationTrace((run) => this.#world.simulate(run), { seed: first.seed });
    const lines = trace.map((line) => `  ${line}\n`).join("");
    print(`trace of seed ${first.seed} up to its first violation:\n${lines}`);
  }

  #showProgress(): void {
    const broken = this.#failed.length > 0 ? `, ${this.#failed.length} broke the contract` : "";
    const text = `… ${this.#done} of ${this.#count} seeds${broken}`;
    const isMark = this.#count >= 100 && this.#done > 0 && this.#done % Math.ceil(this.#count / 20) === 0;
    if (isMark) this.#progress.line(text);
    else this.#progress.status(text);
  }
}

function print(text: string): void {
  process.stdout.write(text);
}
