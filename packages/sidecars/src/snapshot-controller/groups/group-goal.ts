/** The snapshot controller's decision for one VolumeGroupSnapshot (common-controller of the reference). Pure. */
import { hasFinalizer, isDeleting, type Stored } from "@longshore/kube";
import {
  groupBeingDeletedAnnotation,
  groupSnapshotFinalizer,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeSnapshot,
} from "@longshore/storage";
import { groupMismatchOf, groupPointsBack } from "../group-binding.ts";
import { type MemberWrite, missingMemberWrites, type ObservedMembers } from "./group-members.ts";

/** What is known of a group snapshot when a pass begins. */
export interface GroupFacts extends ObservedMembers {
  readonly group: Stored<VolumeGroupSnapshot>;
  /** The content of the name that the group snapshot has, or is to have. */
  readonly content: Stored<VolumeGroupSnapshotContent> | undefined;
  /** The class that it names; undefined: it names none, or no class has that name. */
  readonly groupClass: Stored<VolumeGroupSnapshotClass> | undefined;
  /** The snapshots that it owns. */
  readonly members: readonly Stored<VolumeSnapshot>[];
  /** Key of a member from which a volume is being made. */
  readonly restoring: string | undefined;
}

/** What one pass over a VolumeGroupSnapshot has to do. */
export type GroupGoal =
  | { readonly kind: "none" }
  | { readonly kind: "fail"; readonly reason: string; readonly message: string; readonly notReady: boolean }
  /** Something else must end first; it will wake the group. */
  | { readonly kind: "wait"; readonly reason?: string; readonly message: string }
  | { readonly kind: "chooseClass" }
  | { readonly kind: "protect" }
  | { readonly kind: "createContent" }
  | { readonly kind: "bindContent"; readonly uid: string; readonly className: string | undefined }
  | { readonly kind: "writeMembers"; readonly writes: readonly MemberWrite[] }
  | { readonly kind: "storeStatus"; readonly status: Readonly<Record<string, unknown>> }
  | { readonly kind: "announceDeletion" }
  | { readonly kind: "deleteContent" }
  | { readonly kind: "deleteMembers"; readonly members: readonly Stored<VolumeSnapshot>[] }
  | { readonly kind: "removeFinalizers" };

/** Decides the next step towards the desired state: one step per pass. */
export function decideGroupGoal(observed: GroupFacts): GroupGoal {
  const { group, content } = observed;
  if (isDeleting(group)) return goalOfDeletion(observed);
  const { selector, volumeGroupSnapshotContentName } = group.spec.source;
  if ((selector === undefined) === (volumeGroupSnapshotContentName === undefined)) {
    return fail(
      "GroupSnapshotValidationError",
      "Exactly one of Selector and VolumeGroupSnapshotContentName should be specified",
    );
  }
  const { readyToUse, boundVolumeGroupSnapshotContentName } = group.status ?? {};
  if (readyToUse === true && boundVolumeGroupSnapshotContentName) {
    if (content === undefined) return contentMissing;
    if (groupPointsBack(content, group)) return { kind: "none" };
    return fail(
      "GroupSnapshotMisbound",
      "VolumeGroupSnapshotContent is not bound to the VolumeGroupSnapshot correctly",
    );
  }
  return volumeGroupSnapshotContentName === undefined ? goalOfNew(observed) : goalOfExisting(observed);
}

function goalOfNew(observed: GroupFacts): GroupGoal {
  const { group, content, groupClass } = observed;
  const className = group.spec.volumeGroupSnapshotClassName;
  if (content === undefined) {
    // The group taken at that time is gone: a group taken now would not be the requested one.
    if (group.status?.creationTime !== undefined) return contentMissing;
    if (className === undefined) return { kind: "chooseClass" };
    if (groupClass === undefined) return classMissing(className);
    return isHeld(group) ? { kind: "createContent" } : { kind: "protect" };
  }
  const mismatch = groupMismatchOf(group, content);
  if (mismatch !== undefined) return fail(mismatch.reason, mismatch.message);
  if (!isHeld(group)) return { kind: "protect" };
  if (!group.status?.boundVolumeGroupSnapshotContentName) return goalOfStatus(group, content);
  if (content.status?.volumeGroupSnapshotHandle !== undefined) {
    if (groupClass === undefined) return classMissing(className ?? "");
    const writes = missingMemberWrites(group, content, groupClass, observed);
    if (writes.length > 0) return { kind: "writeMembers", writes };
  }
  return goalOfStatus(group, content);
}

function goalOfExisting({ group, content, groupClass }: GroupFacts): GroupGoal {
  if (content === undefined) return contentMissing;
  const mismatch = groupMismatchOf(group, content);
  if (mismatch !== undefined) return fail(mismatch.reason, mismatch.message);
  const className = group.spec.volumeGroupSnapshotClassName;
  if (className !== undefined && groupClass === undefined) return classMissing(className);
  if (!isHeld(group)) return { kind: "protect" };
  const isBound = content.spec.volumeGroupSnapshotRef.uid === group.metadata.uid;
  const newClass = content.spec.volumeGroupSnapshotClassName === undefined ? className : undefined;
  if (!isBound || newClass !== undefined) {
    return { kind: "bindContent", uid: group.metadata.uid, className: newClass };
  }
  return goalOfStatus(group, content);
}

function goalOfStatus(group: VolumeGroupSnapshot, content: Stored<VolumeGroupSnapshotContent>): GroupGoal {
  const { status = {} } = group;
  const known = content.status ?? {};
  const patch: Record<string, unknown> = {};
  if (!status.boundVolumeGroupSnapshotContentName) {
    patch.boundVolumeGroupSnapshotContentName = content.metadata.name;
  }
  if (status.creationTime === undefined && known.creationTime !== undefined) {
    patch.creationTime = known.creationTime;
  }
  // Not before its members are made, which needs it to be bound first.
  const ready = (known.readyToUse ?? false) && status.boundVolumeGroupSnapshotContentName !== undefined;
  if (status.readyToUse !== ready) patch.readyToUse = ready;
  const error = known.error ?? null;
  if ((status.error?.message ?? "") !== (error?.message ?? "")) patch.error = error;
  return Object.keys(patch).length === 0 ? { kind: "none" } : { kind: "storeStatus", status: patch };
}

function goalOfDeletion({ group, content, members, restoring }: GroupFacts): GroupGoal {
  if (!isHeld(group)) return { kind: "none" };
  if (restoring !== undefined) {
    const { namespace = "", name } = group.metadata;
    return {
      kind: "wait",
      reason: "SnapshotDeletePending",
      message: `Snapshot ${restoring} belonging to VolumeGroupSnapshot ${namespace}/${name} is being used to restore a PVC`,
    };
  }
  const own = content !== undefined && groupPointsBack(content, group) ? content : undefined;
  if (own !== undefined && own.metadata.annotations?.[groupBeingDeletedAnnotation] === undefined) {
    return { kind: "announceDeletion" };
  }
  const isDeleted = own?.spec.deletionPolicy === "Delete";
  if (isDeleted && !isDeleting(own)) return { kind: "deleteContent" };
  const left = members.filter((member) => !isDeleting(member));
  if (left.length > 0) return { kind: "deleteMembers", members: left };
  return isDeleted ? { kind: "wait", message: "its content is being deleted" } : { kind: "removeFinalizers" };
}

function isHeld(group: VolumeGroupSnapshot): boolean {
  return hasFinalizer(group, groupSnapshotFinalizer);
}

const contentMissing: GroupGoal = fail(
  "GroupSnapshotContentMissing",
  "VolumeGroupSnapshotContent is missing",
);

function classMissing(className: string): GroupGoal {
  const message = `Failed to get group snapshot class with error VolumeGroupSnapshotClass "${className}" not found`;
  return { kind: "fail", reason: "GetGroupSnapshotClassFailed", message, notReady: false };
}

function fail(reason: string, message: string): GroupGoal {
  return { kind: "fail", reason, message, notReady: true };
}
