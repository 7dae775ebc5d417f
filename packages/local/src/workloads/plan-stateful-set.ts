/**
 * What a StatefulSet needs: a pure function of the set and its pods.
 *
 * Source: apps/v1 StatefulSet, pod identity and ordering guarantees. Not covered: rolling updates
 * (a changed template takes effect when a pod is next made, as with `OnDelete`).
 */
import { isDeleting, isPodTerminal, type Pod, type StatefulSet, type Stored } from "@longshore/kube";
import { isPodReady } from "./is-pod-ready.ts";

/** What a set needs, each independent of the others. */
export interface StatefulSetPlan {
  /** Ordinals whose pod (and claims) are to be made. */
  readonly create: readonly number[];
  /** Pods to delete: failed or finished ones, and those beyond the wanted number. */
  readonly delete: readonly Stored<Pod>[];
  readonly status: { readonly replicas: number; readonly readyReplicas: number };
}

/** Plans what the set needs. With `OrderedReady` a pod waits until all lower ordinals are ready. */
export function planStatefulSet(set: Stored<StatefulSet>, pods: readonly Stored<Pod>[]): StatefulSetPlan {
  const wanted = set.spec?.replicas ?? 1;
  const parallel = set.spec?.podManagementPolicy === "Parallel";
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set.metadata.name, pod.metadata.name), pod]));
  const status = {
    replicas: pods.length,
    readyReplicas: pods.filter((pod) => isPodReady(pod) && !isDeleting(pod)).length,
  };
  // The garbage collector takes its pods, or leaves them, as the deletion says.
  if (isDeleting(set)) return { create: [], delete: [], status };
  const create: number[] = [];
  const remove: Stored<Pod>[] = [];
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) create.push(ordinal);
    else if (isPodTerminal(pod) && !isDeleting(pod)) remove.push(pod);
    const settled = pod !== undefined && isPodReady(pod) && !isDeleting(pod);
    // With OrderedReady nothing is scaled down either while a wanted pod is not ready.
    if (!parallel && !settled) return { create, delete: remove, status };
  }
  const surplus = [...byOrdinal.entries()]
    .filter(([ordinal]) => ordinal !== undefined && ordinal >= wanted)
    .sort(([a], [b]) => (b ?? 0) - (a ?? 0))
    .map(([, pod]) => pod);
  // Cut before the filter: while the highest ordinal is being deleted, the next one stays.
  const toDelete = parallel ? surplus : surplus.slice(0, 1);
  return { create, delete: [...remove, ...toDelete.filter((pod) => !isDeleting(pod))], status };
}

/** Of a pod named for the set. */
export function ordinalOf(setName: string, podName: string): number | undefined {
  if (!podName.startsWith(`${setName}-`)) return undefined;
  const digits = podName.slice(setName.length + 1);
  return /^(0|[1-9][0-9]*)$/.test(digits) ? Number(digits) : undefined;
}
