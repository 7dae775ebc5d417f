/** Names and bonds of group snapshots and their members (common-controller of the reference). Pure. */
import { createHash } from "node:crypto";
import type { Stored } from "@longshore/kube";
import type { VolumeGroupSnapshot, VolumeGroupSnapshotContent, VolumeSnapshotInfo } from "@longshore/storage";
import type { Mismatch } from "./binding.ts";

/** Name of the content of a new group snapshot. */
export function groupContentName(groupUID: string): string {
  return `groupsnapcontent-${groupUID}`;
}

/** Names of the VolumeSnapshot and of the VolumeSnapshotContent that stand for the snapshot of one volume in a group. */
export function memberNames(
  groupUID: string,
  volumeHandle: string,
): { readonly snapshot: string; readonly content: string } {
  const hash = createHash("sha256")
    .update(groupUID + volumeHandle)
    .digest("hex");
  return { snapshot: `snapshot-${hash}`, content: `snapcontent-${hash}` };
}

/** Name of the content that a group snapshot has or is to have. */
export function contentNameOfGroup(group: Stored<VolumeGroupSnapshot>): string {
  const bound = group.status?.boundVolumeGroupSnapshotContentName;
  return bound || group.spec.source.volumeGroupSnapshotContentName || groupContentName(group.metadata.uid);
}

/** Whether the content is bound to exactly this group snapshot. */
export function groupPointsBack(
  content: VolumeGroupSnapshotContent,
  { metadata }: Stored<VolumeGroupSnapshot>,
): boolean {
  const { name, namespace, uid } = content.spec.volumeGroupSnapshotRef;
  return name === metadata.name && namespace === metadata.namespace && uid === metadata.uid;
}

/** What keeps a group snapshot and its content apart, before they are bound; undefined: nothing does. */
export function groupMismatchOf(
  group: Stored<VolumeGroupSnapshot>,
  content: Stored<VolumeGroupSnapshotContent>,
): Mismatch | undefined {
  const { source, volumeGroupSnapshotRef: ref } = content.spec;
  const contentName = content.metadata.name;
  const existing = group.spec.source.volumeGroupSnapshotContentName !== undefined;
  if (existing !== (source.groupSnapshotHandles !== undefined)) {
    const [is, expected] = existing
      ? ["dynamically provisioned", "pre-provisioned"]
      : ["pre-provisioned", "dynamically provisioned"];
    return {
      reason: "GroupSnapshotContentMismatch",
      message: `VolumeGroupSnapshotContent ${contentName} is ${is} while expecting a ${expected} one`,
    };
  }
  const isMeant =
    ref.name === group.metadata.name &&
    ref.namespace === group.metadata.namespace &&
    (ref.uid === group.metadata.uid || (existing && !ref.uid));
  if (isMeant) return undefined;
  return {
    reason: "GroupSnapshotContentMisbound",
    message: `VolumeGroupSnapshotContent [${contentName}] is bound to a different group snapshot`,
  };
}

/** The snapshots that a driver has made for a group, in either form of the API. */
export function membersOf({ status }: VolumeGroupSnapshotContent): readonly VolumeSnapshotInfo[] {
  const { volumeSnapshotInfoList: infos = [], volumeSnapshotHandlePairList: pairs = [] } = status ?? {};
  return infos.length > 0 ? infos : pairs;
}
