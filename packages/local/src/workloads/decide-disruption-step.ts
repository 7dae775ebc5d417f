/** What the disruption controller does next for a budget. Pure. Source: policy PodDisruptionBudget. */
import {
  isDeleting,
  type Pod,
  type PodDisruptionBudget,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import { type DisruptionStatus, decideDisruptionStatus } from "./decide-disruption-status.ts";
import { pendingEvictions } from "./pending-evictions.ts";

/** What the controller sees of a budget. */
export interface ObservedBudget {
  readonly budget: Stored<PodDisruptionBudget>;
  /** The pods that it selects and that have not ended. */
  readonly pods: readonly Stored<Pod>[];
  /** The StatefulSets that own them. */
  readonly sets: readonly Stored<StatefulSet>[];
  /** When pods of a name were last seen to go, in milliseconds since 1970. */
  readonly goneMs: ReadonlyMap<string, number>;
  readonly now: Date;
  /** This pass has written the status. */
  readonly isWritten: boolean;
}

/** A change of the status: a name without a time is taken out of `disruptedPods`. */
export type DisruptionStatusChange = DisruptionStatus & {
  readonly observedGeneration: number;
  readonly disruptedPods?: Readonly<Record<string, null>>;
};

/** One action of the controller. */
export type DisruptionStep =
  | { readonly step: "writeStatus"; readonly status: DisruptionStatusChange }
  /** An eviction that comes to nothing is counted again after its time. */
  | { readonly step: "waitForEvictions" }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideDisruptionStep(observed: ObservedBudget): DisruptionStep {
  const { budget, pods, sets, goneMs, now, isWritten } = observed;
  if (isDeleting(budget)) return { step: "settle" };
  const evicted = pendingEvictions(budget, pods, now, (name) => goneMs.get(name));
  const counts = decideDisruptionStatus(budget, pods, sets, evicted);
  const seen = Object.keys(budget.status?.disruptedPods ?? {}).filter((name) => evicted[name] === undefined);
  const observedGeneration = budget.metadata.generation ?? 1;
  if (!isWritten && (seen.length > 0 || !isShown(budget, counts, observedGeneration))) {
    const disruptedPods = Object.fromEntries(seen.map((name) => [name, null]));
    const change = { ...counts, observedGeneration };
    return { step: "writeStatus", status: seen.length === 0 ? change : { ...change, disruptedPods } };
  }
  return { step: Object.keys(evicted).length === 0 ? "settle" : "waitForEvictions" };
}

function isShown({ status }: PodDisruptionBudget, counts: DisruptionStatus, generation: number): boolean {
  if (status === undefined || status.observedGeneration !== generation) return false;
  const names = Object.keys(counts) as (keyof DisruptionStatus)[];
  // The API server leaves a count of zero out.
  return names.every((name) => (status[name] ?? 0) === counts[name]);
}
