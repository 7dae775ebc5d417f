/** The snapshotter's decision for one VolumeGroupSnapshotContent (sidecar-controller of the reference). Pure. */
import { hasFinalizer, isDeleting } from "@longshore/kube";
import {
  groupBeingCreatedAnnotation,
  groupBeingDeletedAnnotation,
  groupContentFinalizer,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { ContentStep } from "./content-step.ts";

/** A group at the driver, with its snapshots: calls about it name all of them. */
export interface GroupHandles {
  readonly groupHandle: string;
  readonly snapshotHandles: readonly string[];
}

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
export function decideGroupContentStep(content: VolumeGroupSnapshotContent): ContentStep<GroupHandles> {
  const { spec, status } = content;
  const annotations = content.metadata?.annotations ?? {};
  const isCreated = status?.volumeGroupSnapshotHandle !== undefined;
  if (mayDelete(content)) return stepOfDeletion(content);
  if (annotations[groupBeingCreatedAnnotation] !== undefined && isCreated) return { kind: "settleCreation" };
  if (status?.readyToUse === true && isCreated) return { kind: "none" };
  const handle = handlesOf(content);
  if (spec.source.groupSnapshotHandles !== undefined && handle !== undefined) {
    return { kind: "check", handle };
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

function stepOfDeletion(content: VolumeGroupSnapshotContent): ContentStep<GroupHandles> {
  if (!hasFinalizer(content, groupContentFinalizer)) return { kind: "none" };
  const handle = handlesOf(content);
  if (content.spec.deletionPolicy !== "Delete" || handle === undefined) return { kind: "letGo" };
  return { kind: "delete", handle };
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
