/**
 * The snapshot controller's decision for one VolumeSnapshot (docs/behaviour/sidecars.md 5; common-controller of the
 * reference). Pure.
 */
import { isDeleting, type Stored } from "@longshore/kube";
import {
  beingDeletedAnnotation,
  snapshotBoundFinalizer,
  snapshotInGroupFinalizer,
  snapshotSourceFinalizer,
  type VolumeGroupSnapshot,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { isPreProvisioned, mismatchOf, ownerGroup, pointsBack } from "../binding.ts";
import { snapshotStatusPatch } from "./snapshot-status-patch.ts";

/** What is known of a snapshot when a pass begins. */
export interface SnapshotFacts {
  readonly snapshot: Stored<VolumeSnapshot>;
  /** The content of the name that the snapshot has, or is to have. */
  readonly content: Stored<VolumeSnapshotContent> | undefined;
  /** The class that the snapshot names; undefined: it names none, or no class has that name. */
  readonly snapshotClass: Stored<VolumeSnapshotClass> | undefined;
  /** The claim of which it is made may go although it is not ready. */
  readonly isClaimFree: boolean;
  /** Volumes are being made from it. */
  readonly isRestoring: boolean;
  /** The group snapshot that it belongs to, while that exists. */
  readonly group: Stored<VolumeGroupSnapshot> | undefined;
  /** The group snapshot whose content has the group handle of this content: `unknown` until it is found. */
  readonly groupName: string | undefined | "unknown";
}

/** What one pass over a VolumeSnapshot has to do. */
export type SnapshotGoal =
  | { readonly kind: "none" }
  /** Report what is wrong, and look again later. `notReady`: the snapshot is not usable in this state. */
  | { readonly kind: "fail"; readonly reason: string; readonly message: string; readonly notReady: boolean }
  /** Something else must end first; it will wake the snapshot. */
  | { readonly kind: "wait"; readonly reason?: string; readonly message: string }
  /** Find the default class of the volume's driver. */
  | { readonly kind: "chooseClass" }
  | { readonly kind: "protect"; readonly finalizers: readonly string[] }
  | { readonly kind: "createContent" }
  /** Keep the claim until the snapshot is ready. */
  | { readonly kind: "holdClaim" }
  | { readonly kind: "bindContent"; readonly uid: string; readonly className: string | undefined }
  | { readonly kind: "storeStatus"; readonly status: Readonly<Record<string, unknown>> }
  | { readonly kind: "joinGroup"; readonly group: Stored<VolumeGroupSnapshot> }
  /** Say on the content that its snapshot is being deleted. */
  | { readonly kind: "announceDeletion" }
  | { readonly kind: "deleteContent" }
  | { readonly kind: "removeFinalizers"; readonly finalizers: readonly string[] };

/** Every finalizer that the controller puts on snapshots. */
const ourFinalizers = [snapshotSourceFinalizer, snapshotBoundFinalizer, snapshotInGroupFinalizer] as const;

/** Decides the next step towards the desired state: one step per pass. */
export function decideSnapshotGoal(observed: SnapshotFacts): SnapshotGoal {
  const { snapshot } = observed;
  if (isDeleting(snapshot)) return goalOfDeletion(observed);
  const { persistentVolumeClaimName, volumeSnapshotContentName } = snapshot.spec.source;
  if ((persistentVolumeClaimName === undefined) === (volumeSnapshotContentName === undefined)) {
    return fail(
      "SnapshotValidationError",
      "Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified",
    );
  }
  const { readyToUse, boundVolumeSnapshotContentName } = snapshot.status ?? {};
  if (readyToUse === true && boundVolumeSnapshotContentName) return goalOfReady(observed);
  if (isPreProvisioned(snapshot)) return goalOfExisting(observed);
  return ownerGroup(snapshot) === undefined ? goalOfNew(observed) : goalOfMember(observed);
}

function goalOfDeletion({ snapshot, content, isRestoring, group }: SnapshotFacts): SnapshotGoal {
  const held = ourFinalizers.filter((finalizer) => hasFinalizer(snapshot, finalizer));
  if (held.length === 0) return { kind: "none" };
  const own = content !== undefined && pointsBack(content, snapshot) ? content : undefined;
  if (own !== undefined && isRestoring) {
    return {
      kind: "wait",
      reason: "SnapshotDeletePending",
      message: "Snapshot is being used to restore a PVC",
    };
  }
  if (group !== undefined) return waitForGroup(snapshot, group);
  if (own !== undefined) {
    if (own.metadata.annotations?.[beingDeletedAnnotation] === undefined) return { kind: "announceDeletion" };
    if (own.spec.deletionPolicy === "Delete") {
      if (!isDeleting(own)) return { kind: "deleteContent" };
      return { kind: "wait", message: "its content is being deleted" };
    }
  }
  return { kind: "removeFinalizers", finalizers: held };
}

/** A group is deleted as a whole. */
function waitForGroup(snapshot: Stored<VolumeSnapshot>, group: Stored<VolumeGroupSnapshot>): SnapshotGoal {
  const { namespace = "", name } = snapshot.metadata;
  const groupKey = `${namespace}/${group.metadata.name}`;
  if (isDeleting(group)) return { kind: "wait", message: `group snapshot ${groupKey} is being deleted` };
  return {
    kind: "wait",
    reason: "SnapshotDeletePending",
    message: `VolumeSnapshot ${namespace}/${name} belongs to group snapshot ${groupKey} and is deleted with it only`,
  };
}

function goalOfReady({ snapshot, content, group }: SnapshotFacts): SnapshotGoal {
  if (content === undefined) return contentMissing;
  if (!pointsBack(content, snapshot)) {
    return fail("SnapshotMisbound", "VolumeSnapshotContent is not bound to the VolumeSnapshot correctly");
  }
  const lacking = lackingFinalizers(snapshot, content.spec.deletionPolicy);
  if (lacking.length > 0) return { kind: "protect", finalizers: lacking };
  // An administrator made the members of a group that exists; they learn of their group from the driver.
  if (group !== undefined && ownerGroup(snapshot) === undefined && !isDeleting(group)) {
    return { kind: "joinGroup", group };
  }
  return { kind: "none" };
}

function goalOfExisting(observed: SnapshotFacts): SnapshotGoal {
  const { snapshot, content, snapshotClass } = observed;
  if (content === undefined) return contentMissing;
  const mismatch = mismatchOf(snapshot, content);
  if (mismatch !== undefined) return fail(mismatch.reason, mismatch.message);
  const className = snapshot.spec.volumeSnapshotClassName;
  if (className !== undefined && snapshotClass === undefined) return classMissing(className);
  const lacking = lackingFinalizers(snapshot, content.spec.deletionPolicy);
  if (lacking.length > 0) return { kind: "protect", finalizers: lacking };
  const isBound = content.spec.volumeSnapshotRef.uid === snapshot.metadata.uid;
  const newClass = content.spec.volumeSnapshotClassName === undefined ? className : undefined;
  if (!isBound || newClass !== undefined) {
    return { kind: "bindContent", uid: snapshot.metadata.uid, className: newClass };
  }
  return goalOfStatus(observed, content);
}

/** A member of a group: its objects are made and bound with the group. */
function goalOfMember(observed: SnapshotFacts): SnapshotGoal {
  const { snapshot, content } = observed;
  if (content === undefined) return { kind: "wait", message: "its content is yet to be made with its group" };
  if (!pointsBack(content, snapshot)) {
    return fail("SnapshotMisbound", "VolumeSnapshotContent is not bound to the VolumeSnapshot correctly");
  }
  const lacking = lackingFinalizers(snapshot, content.spec.deletionPolicy);
  if (lacking.length > 0) return { kind: "protect", finalizers: lacking };
  return goalOfStatus(observed, content);
}

function goalOfNew(observed: SnapshotFacts): SnapshotGoal {
  const { snapshot, content, snapshotClass } = observed;
  if (content !== undefined) {
    const mismatch = mismatchOf(snapshot, content);
    if (mismatch !== undefined) return fail(mismatch.reason, mismatch.message);
    const lacking = lackingFinalizers(snapshot, content.spec.deletionPolicy);
    if (lacking.length > 0) return { kind: "protect", finalizers: lacking };
    // The claim was released for another snapshot, which became ready just before this one was requested.
    if (observed.isClaimFree && content.status?.readyToUse !== true) return { kind: "holdClaim" };
    return goalOfStatus(observed, content);
  }
  // The snapshot taken at that time is gone: one taken now would not be the requested one.
  if (snapshot.status?.creationTime !== undefined) return contentMissing;
  const className = snapshot.spec.volumeSnapshotClassName;
  if (className === undefined) return { kind: "chooseClass" };
  if (snapshotClass === undefined) return classMissing(className);
  const lacking = lackingFinalizers(snapshot, snapshotClass.deletionPolicy);
  if (lacking.length > 0) return { kind: "protect", finalizers: lacking };
  return { kind: "createContent" };
}

function goalOfStatus({ snapshot, groupName }: SnapshotFacts, content: VolumeSnapshotContent): SnapshotGoal {
  if (groupName === "unknown") return { kind: "wait", message: "the group of its content is not known yet" };
  const status = snapshotStatusPatch(snapshot, content, groupName);
  return status === undefined ? { kind: "none" } : { kind: "storeStatus", status };
}

/** The finalizers that a snapshot is to have: the second one only where its content is deleted with it. */
export function finalizersFor(policy: string): readonly string[] {
  return policy === "Delete" ? [snapshotSourceFinalizer, snapshotBoundFinalizer] : [snapshotSourceFinalizer];
}

function lackingFinalizers(snapshot: VolumeSnapshot, policy: string): readonly string[] {
  return finalizersFor(policy).filter((finalizer) => !hasFinalizer(snapshot, finalizer));
}

function hasFinalizer(snapshot: VolumeSnapshot, finalizer: string): boolean {
  return snapshot.metadata?.finalizers?.includes(finalizer) ?? false;
}

const contentMissing: SnapshotGoal = fail("SnapshotContentMissing", "VolumeSnapshotContent is missing");

function classMissing(className: string): SnapshotGoal {
  const message = `Failed to get snapshot class with error VolumeSnapshotClass "${className}" not found`;
  return { kind: "fail", reason: "GetSnapshotClassFailed", message, notReady: false };
}

function fail(reason: string, message: string): SnapshotGoal {
  return { kind: "fail", reason, message, notReady: true };
}
