/**
 * What the StatefulSet controller does next for a set. Pure. Source: apps/v1 StatefulSet.
 *
 * A pass adopts the set's pods that nothing controls, and goes through the plan of one observation, deletions first; then it
 * reports the counts of that observation.
 *
 * Invariant: an ordinal never has two pods. A pod is only made where the observation shows none, also none that is being
 * deleted, and under the one name of its ordinal, which the API server gives to one pod at a time.
 */
import {
  isDeleting,
  type OwnerReference,
  type PersistentVolumeClaim,
  type Pod,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import { ordinalOf, planStatefulSet, type StatefulSetPlan } from "./plan-stateful-set.ts";
import { claimsOfStatefulSet, podOfStatefulSet } from "./pod-of-stateful-set.ts";
import { adoptable, claimObjects, controllerReference, type Owner } from "./pod-sets/claim-pods.ts";

/** What the controller sees of a set. */
export interface ObservedStatefulSet {
  readonly set: Stored<StatefulSet>;
  /** The pods that the set owns. */
  readonly pods: readonly Stored<Pod>[];
  /** Pods of its namespace that nothing controls, such as those of a set of this name that was deleted without its pods. */
  readonly orphans: readonly Stored<Pod>[];
  readonly progress: PlanProgress;
}

/** How far this pass has come in the plan. */
export interface PlanProgress {
  readonly podsAdopted: number;
  readonly podsDeleted: number;
  readonly podsCreated: number;
  /** Claims of the ordinal whose pod is made next. */
  readonly claimsCreated: number;
}

/** The status that the controller reports. */
export type StatefulSetCounts = Required<
  Pick<
    NonNullable<StatefulSet["status"]>,
    | "replicas"
    | "readyReplicas"
    | "currentReplicas"
    | "updatedReplicas"
    | "availableReplicas"
    | "observedGeneration"
  >
>;

/** One action of the controller. */
export type StatefulSetStep =
  | { readonly step: "adoptPod"; readonly pod: Stored<Pod>; readonly reference: OwnerReference }
  | { readonly step: "deletePod"; readonly pod: Stored<Pod> }
  | { readonly step: "createClaim"; readonly claim: PersistentVolumeClaim }
  | { readonly step: "createPod"; readonly pod: Pod }
  | { readonly step: "reportStatus"; readonly status: StatefulSetCounts }
  | { readonly step: "settle" };

/** The progress of a pass that begins. */
export const noProgress: PlanProgress = { podsAdopted: 0, podsDeleted: 0, podsCreated: 0, claimsCreated: 0 };

/** Decides on the next step. */
export function decideStatefulSetStep({
  set,
  pods,
  orphans,
  progress,
}: ObservedStatefulSet): StatefulSetStep {
  const owner = ownerOfStatefulSet(set);
  const named = adoptable(orphans).filter(
    ({ metadata }) => ordinalOf(set.metadata.name, metadata.name) !== undefined,
  );
  const { adopt } = claimObjects(owner, [], named);
  const orphan = adopt[progress.podsAdopted];
  if (orphan !== undefined) {
    return { step: "adoptPod", pod: orphan, reference: controllerReference(owner) };
  }
  const plan = planStatefulSet(set, [...pods, ...adopt]);
  const pod = plan.delete[progress.podsDeleted];
  if (pod !== undefined) return { step: "deletePod", pod };
  const ordinal = plan.create[progress.podsCreated];
  if (ordinal !== undefined) {
    const claim = claimsOfStatefulSet(set, ordinal)[progress.claimsCreated];
    return claim === undefined
      ? { step: "createPod", pod: podOfStatefulSet(set, ordinal) }
      : { step: "createClaim", claim };
  }
  const status = countsOf(set, plan.status);
  return isReported(set, status) ? { step: "settle" } : { step: "reportStatus", status };
}

/** The set as an owner of pods. */
export function ownerOfStatefulSet(set: Stored<StatefulSet>): Owner {
  const { name, uid } = set.metadata;
  const selector = set.spec?.selector;
  return { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, selector, isDeleting: isDeleting(set) };
}

function countsOf(
  set: Stored<StatefulSet>,
  { replicas, readyReplicas }: StatefulSetPlan["status"],
): StatefulSetCounts {
  return {
    replicas,
    readyReplicas,
    currentReplicas: replicas,
    updatedReplicas: replicas,
    availableReplicas: readyReplicas,
    observedGeneration: set.metadata.generation ?? 1,
  };
}

/** The API server leaves a count of zero out. */
function isReported({ status }: Stored<StatefulSet>, counts: StatefulSetCounts): boolean {
  return (
    status?.replicas === counts.replicas &&
    (status.readyReplicas ?? 0) === counts.readyReplicas &&
    status.observedGeneration === counts.observedGeneration
  );
}
