/** The indexes of a Job's pods. Pure. Source: batch/v1 JobSpec completionMode, JobStatus completedIndexes. */
import type { Pod } from "@longshore/kube";

/** The annotation, and the label, that hold a pod's index. */
export const indexAnnotation = "batch.kubernetes.io/job-completion-index";

/** The index of the pod; undefined where it has none. */
export function completionIndexOf({ metadata }: Pod): number | undefined {
  const text = metadata?.annotations?.[indexAnnotation];
  return text === undefined || !/^[0-9]+$/.test(text) ? undefined : Number(text);
}

/** Indexes as a list of numbers and of runs of them, such as `0-2,5`. */
export function completedIndexesText(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b);
  const runs: { first: number; last: number }[] = [];
  for (const index of sorted) {
    const run = runs.at(-1);
    if (run !== undefined && index === run.last + 1) run.last = index;
    else runs.push({ first: index, last: index });
  }
  const text = ({ first, last }: { first: number; last: number }) =>
    first === last ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`;
  return runs.map(text).join(",");
}
