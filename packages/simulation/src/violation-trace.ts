/** The trace of a seed that broke the contract: what led to the first violation, without the small faults. */
import type { SeedOptions } from "./seed-result.ts";
import { traceLine } from "./trace.ts";

const linesMax = 60;

/**
 * Runs the seed again; returns the trace up to its first violation: the last 60 lines that say what happened, rather than
 * which call was slow or lost. Where `only` limits the faults, those calls are shown too.
 * @param simulate plays a seed of the world in which the contract was broken
 */
export async function violationTrace(
  simulate: (options: SeedOptions) => Promise<unknown>,
  options: Pick<SeedOptions, "seed" | "only">,
): Promise<readonly string[]> {
  const lines: string[] = [];
  let isBroken = false;
  await simulate({
    ...options,
    onTrace(event) {
      if (!isBroken && (event.kind !== "call" || options.only !== undefined)) lines.push(traceLine(event));
      isBroken ||= event.kind === "broken";
    },
  });
  return lines.slice(-linesMax);
}
