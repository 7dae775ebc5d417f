/**
 * The counts of a budget. Pure. Source: policy PodDisruptionBudget (minAvailable and maxUnavailable, counts and
 * percentages; expected pods are those of the owning StatefulSets, else the pods there are).
 */
import {
  isDeleting,
  type Pod,
  type PodDisruptionBudget,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import { isPodReady } from "./is-pod-ready.ts";

/** The counts of a budget's status. */
export interface DisruptionStatus {
  readonly expectedPods: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly disruptionsAllowed: number;
}

/** Computes a budget's counts from the pods it selects, the sets that own them and evictions not yet seen. */
export function decideDisruptionStatus(
  budget: PodDisruptionBudget,
  pods: readonly Stored<Pod>[],
  sets: readonly Stored<StatefulSet>[],
  evicted: Readonly<Record<string, string>> = {},
): DisruptionStatus {
  const expectedPods = expectedPodsOf(pods, sets);
  const currentHealthy = pods.filter(
    (pod) => isPodReady(pod) && !isDeleting(pod) && evicted[pod.metadata.name] === undefined,
  ).length;
  const { maxUnavailable, minAvailable = 0 } = budget.spec ?? {};
  const desiredHealthy =
    maxUnavailable === undefined
      ? scaled(minAvailable, expectedPods)
      : Math.max(0, expectedPods - scaled(maxUnavailable, expectedPods));
  const disruptionsAllowed = expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return { expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed };
}

function expectedPodsOf(pods: readonly Stored<Pod>[], sets: readonly Stored<StatefulSet>[]): number {
  const owners = new Set(pods.flatMap(ownersOf));
  const owned = sets.filter(({ metadata }) => owners.has(metadata.uid));
  const owning = new Set(owned.map(({ metadata }) => metadata.uid));
  const unowned = pods.filter((pod) => !ownersOf(pod).some((uid) => owning.has(uid)));
  return owned.reduce((sum, { spec }) => sum + (spec?.replicas ?? 1), 0) + unowned.length;
}

/** UIDs of the objects that own the pod. */
export function ownersOf(pod: Pod): readonly string[] {
  return pod.metadata?.ownerReferences?.map(({ uid }) => uid) ?? [];
}

/** A count, or a percentage of `total` rounded up. */
function scaled(value: number | string, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  return percent === undefined ? Number(value) : Math.ceil((Number(percent) / 100) * total);
}
