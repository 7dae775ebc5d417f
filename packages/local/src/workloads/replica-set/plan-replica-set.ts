/**
 * What a ReplicaSet needs: a pure function of the set and its pods. Source: apps/v1 ReplicaSet; kubernetes
 * pkg/controller/replicaset, for the order of deletion controller.ActivePods.
 */
import { isDeleting, type Pod, type ReplicaSet, type Stored } from "@longshore/kube";
import { isPodReady } from "../is-pod-ready.ts";
import { adoptable, claimObjects, controllerReference, type Owner } from "../pod-sets/claim-pods.ts";
import { availability, isActive } from "../pod-sets/pod-availability.ts";
import { podFromTemplate } from "../pod-sets/pod-from-template.ts";
import type { PlannedObservation, PodSetStep } from "../pod-sets/pod-set-steps.ts";

/** What the controller sees of a set. */
export interface ObservedReplicaSet extends PlannedObservation {
  readonly set: Stored<ReplicaSet>;
  /** The pods that it controls. */
  readonly pods: readonly Stored<Pod>[];
  /** Pods of its namespace that nothing controls. */
  readonly orphans: readonly Stored<Pod>[];
  readonly now: Date;
}

type ReplicaSetStatus = Required<
  Pick<
    NonNullable<ReplicaSet["status"]>,
    "replicas" | "readyReplicas" | "availableReplicas" | "fullyLabeledReplicas" | "observedGeneration"
  >
>;

/** One action of the controller. */
export type ReplicaSetStep =
  | PodSetStep
  | { readonly step: "reportStatus"; readonly status: ReplicaSetStatus; readonly nextMs: number | undefined }
  | { readonly step: "settle"; readonly nextMs: number | undefined };

/** Most pods that one pass makes. */
const createMax = 500;

/** The set as an owner of pods. */
export function ownerOfReplicaSet(set: Stored<ReplicaSet>): Owner {
  const { name, uid } = set.metadata;
  const selector = set.spec?.selector;
  return { apiVersion: "apps/v1", kind: "ReplicaSet", name, uid, selector, isDeleting: isDeleting(set) };
}

/** Decides on the next step: the plan's, then the report of what was seen when the pass began. */
export function decideReplicaSetStep(observed: ObservedReplicaSet): ReplicaSetStep {
  const { set, pods, orphans, now, done } = observed;
  const owner = ownerOfReplicaSet(set);
  const claimed = claimObjects(owner, pods, adoptable(orphans));
  const active = claimed.owned.filter(isActive);
  const step = stepsOf(set, owner, claimed, active)[done];
  if (step !== undefined) return step;
  const labels = Object.entries(set.spec?.template?.metadata?.labels ?? {});
  const { available, nextMs } = availability(active, set.spec?.minReadySeconds ?? 0, now);
  const status: ReplicaSetStatus = {
    replicas: active.length,
    readyReplicas: active.filter(isPodReady).length,
    availableReplicas: available,
    fullyLabeledReplicas: active.filter(({ metadata }) =>
      labels.every(([key, value]) => metadata.labels?.[key] === value),
    ).length,
    observedGeneration: set.metadata.generation ?? 1,
  };
  const isReported = (Object.keys(status) as (keyof ReplicaSetStatus)[]).every(
    (count) => (set.status?.[count] ?? 0) === status[count],
  );
  return isReported ? { step: "settle", nextMs } : { step: "reportStatus", status, nextMs };
}

function stepsOf(
  set: Stored<ReplicaSet>,
  owner: Owner,
  { adopt, release }: ReturnType<typeof claimObjects<Pod>>,
  active: readonly Stored<Pod>[],
): PodSetStep[] {
  // What an owner that goes has made, goes by its references.
  if (owner.isDeleting) return [];
  const reference = controllerReference(owner);
  const missing = (set.spec?.replicas ?? 1) - active.length;
  const namespace = set.metadata.namespace ?? "default";
  const pod = podFromTemplate({ owner, namespace, template: set.spec?.template });
  return [
    ...adopt.map((one): PodSetStep => ({ step: "adoptPod", pod: one, reference })),
    ...release.map((one): PodSetStep => ({ step: "releasePod", pod: one, ownerUID: owner.uid })),
    ...deletionOrder(active)
      .slice(0, Math.max(0, -missing))
      .map((one): PodSetStep => ({ step: "deletePod", pod: one })),
    ...Array.from(
      { length: Math.min(createMax, Math.max(0, missing)) },
      (): PodSetStep => ({ step: "createPod", pod }),
    ),
  ];
}

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost";

/** The pods in the order in which they are deleted: what serves least goes first, of equals the newest. */
export function deletionOrder(pods: readonly Stored<Pod>[]): readonly Stored<Pod>[] {
  const rank = (pod: Stored<Pod>) => [
    pod.spec?.nodeName === undefined ? 0 : 1,
    pod.status?.phase === "Running" ? 1 : 0,
    isPodReady(pod) ? 1 : 0,
    Number(pod.metadata.annotations?.[costAnnotation] ?? 0) || 0,
    -restartsOf(pod),
    -Date.parse(pod.metadata.creationTimestamp ?? ""),
  ];
  const ranked = pods.map((pod) => ({ pod, rank: rank(pod) }));
  const compare = (a: readonly number[], b: readonly number[]) => {
    const at = a.findIndex((value, i) => value !== b[i]);
    return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
  };
  return ranked.sort((a, b) => compare(a.rank, b.rank)).map(({ pod }) => pod);
}

function restartsOf({ status }: Pod): number {
  return (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);
}
