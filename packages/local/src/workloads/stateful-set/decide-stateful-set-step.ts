/**
 * What the StatefulSet controller does next for a set. Pure. Source: apps/v1 StatefulSet.
 *
 * A pass adopts the revisions and pods of the set that nothing controls, such as those of a set of its name that was deleted
 * without its pods, and sees to it that the last revision is that of the template. Then it goes through the plan of one
 * observation, deletions first, removes revisions beyond the history, and reports the counts of that observation.
 *
 * Invariant: an ordinal never has two pods. A pod is only made where the observation shows none, also none that is being
 * deleted, and under the one name of its ordinal, which the API server gives to one pod at a time.
 */
import {
  type ControllerRevision,
  isDeleting,
  type OwnerReference,
  type PersistentVolumeClaim,
  type Pod,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import { adoptable, claimObjects, controllerReference, type Owner } from "../pod-sets/claim-pods.ts";
import { ordinalOf, partitionOf, planStatefulSet } from "./plan-stateful-set.ts";
import { claimsOfStatefulSet, podOfStatefulSet } from "./pod-of-stateful-set.ts";
import {
  type RevisionWrite,
  revisionsBeyondHistory,
  revisionsOf,
  revisionWrite,
  type SetRevisions,
} from "./revisions.ts";
import { type StatefulSetReport, showsReport, statefulSetReport } from "./stateful-set-status.ts";

/** What the controller sees of a set. */
export interface ObservedStatefulSet {
  readonly set: Stored<StatefulSet>;
  /** The pods that the set owns. */
  readonly pods: readonly Stored<Pod>[];
  /** Pods of its namespace that nothing controls, such as those of a set of this name that was deleted without its pods. */
  readonly orphans: readonly Stored<Pod>[];
  /** The revisions that the set owns. */
  readonly revisions: readonly Stored<ControllerRevision>[];
  /** Revisions of its namespace that nothing controls. */
  readonly orphanRevisions: readonly Stored<ControllerRevision>[];
  readonly now: Date;
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

/** One action of the controller. */
export type StatefulSetStep =
  | RevisionWrite
  | {
      readonly step: "adoptRevision";
      readonly revision: Stored<ControllerRevision>;
      readonly reference: OwnerReference;
    }
  | { readonly step: "removeRevision"; readonly revision: Stored<ControllerRevision> }
  | { readonly step: "adoptPod"; readonly pod: Stored<Pod>; readonly reference: OwnerReference }
  | { readonly step: "deletePod"; readonly pod: Stored<Pod> }
  | { readonly step: "createClaim"; readonly claim: PersistentVolumeClaim }
  | { readonly step: "createPod"; readonly pod: Pod }
  | { readonly step: "reportStatus"; readonly status: StatefulSetReport; readonly nextMs: number | undefined }
  | { readonly step: "settle"; readonly nextMs: number | undefined };

/** The progress of a pass that begins. */
export const noProgress: PlanProgress = { podsAdopted: 0, podsDeleted: 0, podsCreated: 0, claimsCreated: 0 };

/** Decides on the next step. */
export function decideStatefulSetStep(observed: ObservedStatefulSet): StatefulSetStep {
  const { set, revisions, orphans, now, progress } = observed;
  const owner = ownerOfStatefulSet(set);
  const ofTemplate = owner.isDeleting ? undefined : revisionStep(observed, owner);
  if (ofTemplate !== undefined) return ofTemplate;
  const named = adoptable(orphans).filter(
    ({ metadata }) => ordinalOf(set.metadata.name, metadata.name) !== undefined,
  );
  const { adopt } = claimObjects(owner, [], named);
  const orphan = adopt[progress.podsAdopted];
  if (orphan !== undefined) {
    return { step: "adoptPod", pod: orphan, reference: controllerReference(owner) };
  }
  const pods = [...observed.pods, ...adopt];
  const between = revisionsOf(set, revisions);
  const planned = planStep(observed, pods, between);
  if (planned !== undefined) return planned;
  const [beyond] = owner.isDeleting ? [] : revisionsBeyondHistory(set, revisions, pods);
  if (beyond !== undefined) return { step: "removeRevision", revision: beyond };
  const { status, nextMs } = statefulSetReport(set, pods, between, now);
  return showsReport(set, status) ? { step: "settle", nextMs } : { step: "reportStatus", status, nextMs };
}

/** The set as an owner of pods. */
export function ownerOfStatefulSet(set: Stored<StatefulSet>): Owner {
  const { name, uid } = set.metadata;
  const selector = set.spec?.selector;
  return { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, selector, isDeleting: isDeleting(set) };
}

/** Revisions come before pods: those of a set of this name are how its pods are known to have the template. */
function revisionStep(
  { set, revisions, orphanRevisions }: ObservedStatefulSet,
  owner: Owner,
): StatefulSetStep | undefined {
  const [orphan] = claimObjects(owner, [], orphanRevisions).adopt;
  return orphan === undefined
    ? revisionWrite(set, owner, revisions)
    : { step: "adoptRevision", revision: orphan, reference: controllerReference(owner) };
}

function planStep(
  { set, now, progress }: ObservedStatefulSet,
  pods: readonly Stored<Pod>[],
  revisions: SetRevisions | undefined,
): StatefulSetStep | undefined {
  const plan = planStatefulSet(set, pods, { updateRevision: revisions?.update.name, now });
  const pod = plan.delete[progress.podsDeleted];
  if (pod !== undefined) return { step: "deletePod", pod };
  const ordinal = plan.create[progress.podsCreated];
  if (ordinal === undefined || revisions === undefined) return undefined;
  const claim = claimsOfStatefulSet(set, ordinal)[progress.claimsCreated];
  if (claim !== undefined) return { step: "createClaim", claim };
  const revision = ordinal < partitionOf(set) ? revisions.current : revisions.update;
  return { step: "createPod", pod: podOfStatefulSet(set, ordinal, revision) };
}
