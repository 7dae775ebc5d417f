/**
 * What a StatefulSet needs: a pure function of the set, its pods and the templates between which it moves.
 *
 * Source: apps/v1 StatefulSet, pod identity, ordering guarantees and update strategies; kubernetes pkg/controller/statefulset
 * updateStatefulSet. Not covered: `maxUnavailable` of a rolling update (one pod at a time is replaced), ordinals that do not
 * start at 0, and the deletion of claims.
 */
import { isDeleting, isPodTerminal, type Pod, type StatefulSet, type Stored } from "@longshore/kube";
import { availableInMs } from "../pod-sets/pod-availability.ts";
import { revisionLabel } from "../pod-sets/pod-from-template.ts";

/** What a set needs, each independent of the others. */
export interface StatefulSetPlan {
  /** Ordinals whose pod (and claims) are to be made. */
  readonly create: readonly number[];
  /** Pods to delete: failed or finished ones, those beyond the wanted number, and the next of an earlier template. */
  readonly delete: readonly Stored<Pod>[];
}

/** Besides the set and its pods. */
export interface PlanContext {
  /** Name of the revision that pods are to have; undefined: none are replaced for theirs. */
  readonly updateRevision: string | undefined;
  readonly now: Date;
}

/**
 * Plans what the set needs. With `OrderedReady` a pod waits until all lower ordinals are available, and no pod is replaced while
 * one is not: a template whose pods never become ready stays until its pod is deleted by hand, as in Kubernetes.
 */
export function planStatefulSet(
  set: Stored<StatefulSet>,
  pods: readonly Stored<Pod>[],
  context: PlanContext,
): StatefulSetPlan {
  // The garbage collector takes its pods, or leaves them, as the deletion says.
  if (isDeleting(set)) return { create: [], delete: [] };
  const wanted = set.spec?.replicas ?? 1;
  const parallel = set.spec?.podManagementPolicy === "Parallel";
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set.metadata.name, pod.metadata.name), pod]));
  const serves = servesOf(set, context.now);
  const create: number[] = [];
  const remove: Stored<Pod>[] = [];
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) create.push(ordinal);
    else if (isPodTerminal(pod) && !isDeleting(pod)) remove.push(pod);
    // With OrderedReady nothing is scaled down or replaced either while a wanted pod is not available.
    if (!parallel && !serves(pod)) return { create, delete: remove };
  }
  const surplus = [...byOrdinal.entries()]
    .filter(([ordinal]) => ordinal !== undefined && ordinal >= wanted)
    .sort(([a], [b]) => (b ?? 0) - (a ?? 0))
    .map(([, pod]) => pod);
  // Cut before the filter: while the highest ordinal is being deleted, the next one stays.
  const toDelete = parallel ? surplus : surplus.slice(0, 1);
  const outdated = parallel || surplus.length === 0 ? nextOutdated(set, byOrdinal, context) : undefined;
  remove.push(...toDelete.filter((pod) => !isDeleting(pod)));
  return { create, delete: outdated === undefined ? remove : [...remove, outdated] };
}

/** The lowest ordinal that a rollout replaces; those below keep the template from which it began. */
export function partitionOf({ spec }: StatefulSet): number {
  if (spec?.updateStrategy?.type === "OnDelete") return 0;
  return spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
}

/** The pod that makes way for one of the new template: the highest ordinal first, and none while a higher one is not available. */
function nextOutdated(
  set: Stored<StatefulSet>,
  byOrdinal: ReadonlyMap<number | undefined, Stored<Pod>>,
  { updateRevision, now }: PlanContext,
): Stored<Pod> | undefined {
  if (updateRevision === undefined || set.spec?.updateStrategy?.type === "OnDelete") return undefined;
  const serves = servesOf(set, now);
  for (let ordinal = (set.spec?.replicas ?? 1) - 1; ordinal >= partitionOf(set); ordinal--) {
    const pod = byOrdinal.get(ordinal);
    // One that has come to its end goes in any case.
    if (pod === undefined || isDeleting(pod) || isPodTerminal(pod)) return undefined;
    if (pod.metadata.labels?.[revisionLabel] !== updateRevision) return pod;
    if (!serves(pod)) return undefined;
  }
  return undefined;
}

/** Whether a pod is there, stays, and has been ready for `minReadySeconds`. */
function servesOf({ spec }: StatefulSet, now: Date): (pod: Stored<Pod> | undefined) => boolean {
  const minReadySeconds = spec?.minReadySeconds ?? 0;
  return (pod) =>
    pod !== undefined && !isDeleting(pod) && (availableInMs(pod, minReadySeconds, now) ?? 1) <= 0;
}

/** Of a pod named for the set. */
export function ordinalOf(setName: string, podName: string): number | undefined {
  if (!podName.startsWith(`${setName}-`)) return undefined;
  const digits = podName.slice(setName.length + 1);
  return /^(0|[1-9][0-9]*)$/.test(digits) ? Number(digits) : undefined;
}
