/** Evictions whose deletion the cache does not show yet. Pure. Source: policy PodDisruptionBudget, `disruptedPods`. */
import { isDeleting, type Pod, type PodDisruptionBudget, type Stored } from "@longshore/kube";

/** An evicted pod that is not seen being deleted after this time, in milliseconds, was not evicted after all. */
export const evictionSeenWithinMs = 2 * 60_000;

/**
 * Pods that the evicting side has let go and whose deletion is yet to be seen. They count as gone: the
 * cache may lag behind the eviction, which would allow the same disruption twice.
 */
export function pendingEvictions(
  budget: PodDisruptionBudget,
  pods: readonly Stored<Pod>[],
  now: Date,
  /** When a pod of that name was last seen to go, in milliseconds since 1970. */
  lastGoneMs: (podName: string) => number | undefined = () => undefined,
): Readonly<Record<string, string>> {
  const isPending = ([name, at]: [string, string]) =>
    now.getTime() - Date.parse(at) < evictionSeenWithinMs &&
    (lastGoneMs(name) ?? 0) < Date.parse(at) &&
    pods.some((pod) => pod.metadata.name === name && !isDeleting(pod) && !isMadeAfter(pod, at));
  return Object.fromEntries(Object.entries(budget.status?.disruptedPods ?? {}).filter(isPending));
}

/** A later pod of the same name is not the evicted one. Times have no fractions of a second. */
function isMadeAfter(pod: Stored<Pod>, at: string): boolean {
  return Date.parse(pod.metadata.creationTimestamp ?? "") > Date.parse(at);
}
