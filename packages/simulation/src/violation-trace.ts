/** The trace of a seed that broke the contract: what led to the first violation, without the small faults. */
import { type SimulationOptions, simulateCrossing } from "./simulate-crossing.ts";

/** Lines of a trace that say what happened, rather than which call was slow or lost. */
const eventLine =
  /^\d+ (crossing: (migrate|rollback|step|ended)|crash |start |in-tree |csi |cloud: |broken: )/;
const linesMax = 60;

/** Runs the seed again; returns the trace up to its first violation: the last 60 lines that say what happened. */
export async function violationTrace(options: SimulationOptions): Promise<readonly string[]> {
  const lines: string[] = [];
  let isBroken = false;
  await simulateCrossing({
    ...options,
    onTrace(line) {
      if (!isBroken && eventLine.test(line)) lines.push(line);
      isBroken ||= line.includes(" broken: ");
    },
  });
  return lines.slice(-linesMax);
}
