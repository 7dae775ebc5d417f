/** The story of a seed that broke the contract: what led to the first violation, without the small faults. */
import { type SimulationOptions, simulateCrossing } from "./simulate-crossing.ts";

/** Lines of a trace that say what happened, rather than which call was slow or lost. */
const eventLine =
  /^\d+ (crossing: (migrate|rollback|step|ended)|crash |start |in-tree |csi |cloud: |broken: )/;
const linesMax = 60;

/** Plays the seed again; the lines up to its first violation, the last 60 of those that say what happened. */
export async function storyOf(options: SimulationOptions): Promise<readonly string[]> {
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
