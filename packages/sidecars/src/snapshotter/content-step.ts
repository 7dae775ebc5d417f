/**
 * The snapshotter's decision for one VolumeSnapshotContent (docs/behaviour/sidecars.md 5; sidecar-controller of the
 * reference). Pure.
 */
import { hasFinalizer, isDeleting } from "@longshore/kube";
import {
  beingCreatedAnnotation,
  beingDeletedAnnotation,
  contentFinalizer,
  groupHandleAnnotation,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";

/**
 * What one pass over a content has to do, of a single snapshot or of a group.
 * @typeParam H what names the snapshot, or the group, to the driver
 */
export type ContentStep<H> =
  | { readonly kind: "none" }
  /** Ask for the snapshot; again and again until it is ready. */
  | { readonly kind: "create" }
  /** Look how a snapshot is that exists. */
  | { readonly kind: "check"; readonly handle: H }
  /** Delete the snapshot at the driver. */
  | { readonly kind: "delete"; readonly handle: H }
  /** Nothing is left to delete, or nothing is to be: take the finalizer off. */
  | { readonly kind: "letGo" }
  /** The outcome of CreateSnapshot is known: take the annotation off that says otherwise. */
  | { readonly kind: "settleCreation" };

/**
 * Whether the content belongs to this driver.
 * @param classOf the class of this name; undefined: it is gone, and speaks neither for nor against
 */
export function isOfDriver(
  content: VolumeSnapshotContent,
  driver: string,
  classOf: (name: string) => VolumeSnapshotClass | undefined,
): boolean {
  const { spec } = content;
  if (spec.driver !== driver) return false;
  if (spec.source.volumeHandle === undefined && spec.source.snapshotHandle === undefined) return false;
  const { volumeSnapshotClassName: name } = spec;
  return name === undefined || (classOf(name)?.driver ?? driver) === driver;
}

/**
 * A creation is finished before anything is deleted, so that no unknown snapshot is left at the driver.
 * @param canLook the driver can be asked how a snapshot is
 */
export function decideContentStep(content: VolumeSnapshotContent, canLook: boolean): ContentStep<string> {
  const { spec, status } = content;
  const handle = status?.snapshotHandle;
  const beingCreated = content.metadata?.annotations?.[beingCreatedAnnotation] !== undefined;
  if (mayDelete(content)) return stepOfDeletion(content);
  if (beingCreated && handle !== undefined) return { kind: "settleCreation" };
  if (status?.readyToUse === true && handle !== undefined) return { kind: "none" };
  if (spec.source.snapshotHandle !== undefined) {
    return { kind: "check", handle: handle ?? spec.source.snapshotHandle };
  }
  if (!isGroupMember(content)) return { kind: "create" };
  // Its snapshot was made with its group; the snapshot controller says which it is and, like the driver, how it is.
  if (handle === undefined || !canLook) return { kind: "none" };
  return { kind: "check", handle };
}

/** Whether the snapshot belongs to a group. */
function isGroupMember(content: VolumeSnapshotContent): boolean {
  if (content.status?.volumeGroupSnapshotHandle !== undefined) return true;
  return content.metadata?.annotations?.[groupHandleAnnotation] !== undefined;
}

/**
 * A content that was bound goes only after its VolumeSnapshot has; one of an uncertain creation goes once that is
 * settled; one that was never bound goes at once.
 */
function mayDelete(content: VolumeSnapshotContent): boolean {
  if (!isDeleting(content)) return false;
  const { source, volumeSnapshotRef } = content.spec;
  if (source.snapshotHandle !== undefined && !volumeSnapshotRef.uid) return true;
  const annotations = content.metadata?.annotations ?? {};
  return (
    annotations[beingCreatedAnnotation] === undefined && annotations[beingDeletedAnnotation] !== undefined
  );
}

function stepOfDeletion(content: VolumeSnapshotContent): ContentStep<string> {
  const { spec, status } = content;
  if (!hasFinalizer(content, contentFinalizer)) return { kind: "none" };
  const handle = status?.snapshotHandle ?? spec.source.snapshotHandle;
  // A snapshot of a group goes with its group.
  const isDeletable = spec.deletionPolicy === "Delete" && !isGroupMember(content);
  if (!isDeletable || handle === undefined) return { kind: "letGo" };
  return { kind: "delete", handle };
}
