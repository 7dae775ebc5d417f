/** The fewest faults with which a seed breaks the same rule of the contract. */
import { minimise, type SeedResult, violationTrace } from "@longshore/simulation";
import type { Progress } from "../../terminal.ts";
import type { World } from "./world.ts";

/** What is left of a seed that broke the contract. */
export interface MinimisedSeed {
  readonly seed: number;
  /** How many faults its run had. */
  readonly faults: number;
  /** Names of those that are needed. */
  readonly kept: readonly string[];
  readonly isMinimal: boolean;
  readonly runs: number;
  readonly violations: readonly string[];
  readonly trace: readonly string[];
}

/** Runs the seed again and again with fewer of its faults. */
export async function minimisedSeed(
  { seed, struck, violations }: SeedResult,
  world: World,
  progress: Progress,
  signal: AbortSignal,
): Promise<MinimisedSeed> {
  const rules = new Set(violations.map(ruleOf));
  const run = (kept: readonly string[]) => world.simulate({ seed, only: new Set(kept) });
  const fails = async (kept: readonly string[]) => {
    signal.throwIfAborted();
    // Signals get their turn: a simulation on a virtual clock may leave them none.
    await new Promise((resolve) => setImmediate(resolve));
    return (await run(kept)).violations.some((violation) => rules.has(ruleOf(violation)));
  };
  const onRun = (left: number, runs: number) =>
    progress.status(`… ${left} of ${struck.length} faults left after ${runs} runs`);
  const { kept, isMinimal, runs } = await minimise([...new Set(struck)], fails, { onRun });
  progress.clear();
  const trace = await violationTrace((options) => world.simulate(options), { seed, only: new Set(kept) });
  const result = await run(kept);
  return { seed, faults: struck.length, kept, isMinimal, runs, violations: result.violations, trace };
}

/** Which rule a violation breaks, such as `C1`. */
function ruleOf(violation: string): string {
  return violation.split(":", 1)[0] ?? violation;
}
