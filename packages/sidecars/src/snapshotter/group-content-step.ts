/** The snapshotter's decision for one VolumeGroupSnapshotContent (sidecar-controller of the reference). Pure. */
import { isDeleting } from "@longshore/kube";
import {
  groupBeingCreatedAnnotation,
  groupBeingDeletedAnnotation,
  groupContentFinalizer,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";

/** A group at the driver, with its snapshots: calls about it name all of them. */
export interface GroupHandles {
  readonly groupHandle: string;
  readonly snapshotHandles: readonly string[];
}

/** What one pass over a VolumeGroupSnapshotContent has to do. */
export type GroupContentStep =
  | { readonly kind: "none" }
  /** Ask for the group; again and again until it is ready. */
  | { readonly kind: "create" }
  /** Look how a group is that exists. */
  | { readonly kind: "check"; readonly handles: GroupHandles }
  /** Delete the group at the driver. */
  | { readonly kind: "delete"; readonly handles: GroupHandles }
  /** Nothing is left to delete, or nothing is to be: take the finalizer off. */
  | { readonly kind: "letGo" }
  /** The outcome of CreateVolumeGroupSnapshot is known: take the annotation off that says otherwise. */
  | { readonly kind: "settleCreation" };

/** Whether the content belongs to this driver; see `isOfDriver` of single ones. */
export function isGroupOfDriver(
  content: VolumeGroupSnapshotContent,
  driver: string,
  classOf: (name: string) => VolumeGroupSnapshotClass | undefined,
): boolean {
  const { source, driver: named, volumeGroupSnapshotClassName: name } = content.spec;
  if (named !== driver) return false;
  if (source.groupSnapshotHandles === undefined && (source.volumeHandles ?? []).length === 0) return false;
  return name === undefined || (classOf(name)?.driver ?? driver) === driver;
}

/** Creating is finished with before anything is deleted, as with single snapshots. */
export function decideGroupContentStep(content: VolumeGroupSnapshotContent): GroupContentStep {
  const { spec, status } = content;
  const annotations = content.metadata?.annotations ?? {};
  const isCreated = status?.volumeGroupSnapshotHandle !== undefined;
  if (mayDelete(content)) return stepOfDeletion(content);
  if (annotations[groupBeingCreatedAnnotation] !== undefined && isCreated) return { kind: "settleCreation" };
  if (status?.readyToUse === true && isCreated) return { kind: "none" };
  const handles = handlesOf(content);
  if (spec.source.groupSnapshotHandles !== undefined && handles !== undefined) {
    return { kind: "check", handles };
  }
  return { kind: "create" };
}

function mayDelete(content: VolumeGroupSnapshotContent): boolean {
  if (!isDeleting(content)) return false;
  const { source, volumeGroupSnapshotRef } = content.spec;
  if (source.groupSnapshotHandles !== undefined && !volumeGroupSnapshotRef.uid) return true;
  const annotations = content.metadata?.annotations ?? {};
  return (
    annotations[groupBeingCreatedAnnotation] === undefined &&
    annotations[groupBeingDeletedAnnotation] !== undefined
  );
}

function stepOfDeletion(content: VolumeGroupSnapshotContent): GroupContentStep {
  if (!(content.metadata?.finalizers ?? []).includes(groupContentFinalizer)) return { kind: "none" };
  const handles = handlesOf(content);
  if (content.spec.deletionPolicy !== "Delete" || handles === undefined) return { kind: "letGo" };
  return { kind: "delete", handles };
}

function handlesOf({ spec, status }: VolumeGroupSnapshotContent): GroupHandles | undefined {
  const { groupSnapshotHandles: given } = spec.source;
  const groupHandle = status?.volumeGroupSnapshotHandle ?? given?.volumeGroupSnapshotHandle;
  if (groupHandle === undefined) return undefined;
  const made = (status?.volumeSnapshotInfoList ?? status?.volumeSnapshotHandlePairList ?? [])
    .map(({ snapshotHandle }) => snapshotHandle)
    .filter((handle) => handle !== undefined);
  return { groupHandle, snapshotHandles: made.length > 0 ? made : (given?.volumeSnapshotHandles ?? []) };
}
