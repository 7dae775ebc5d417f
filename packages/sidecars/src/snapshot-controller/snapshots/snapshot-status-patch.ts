/** What a VolumeSnapshot says of its content. Pure. */
import { formatBytes } from "@longshore/kube";
import type { VolumeSnapshot, VolumeSnapshotContent } from "@longshore/storage";
import { apiTimeOf } from "../../snapshotter/snapshot-state.ts";

/**
 * What to write into the status of a snapshot, so that it agrees with its content; undefined: it does.
 * @param groupName the group snapshot to which the content belongs, where that is known
 */
export function snapshotStatusPatch(
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent,
  groupName: string | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const { status = {} } = snapshot;
  const known = content.status ?? {};
  const patch: Record<string, unknown> = {};
  if (!status.boundVolumeSnapshotContentName) {
    patch.boundVolumeSnapshotContentName = content.metadata?.name;
  }
  if (status.creationTime === undefined && known.creationTime !== undefined) {
    patch.creationTime = apiTimeOf(known.creationTime);
  }
  const ready = known.readyToUse ?? false;
  if (status.readyToUse !== ready) patch.readyToUse = ready;
  if (isUnknownSize(status.restoreSize) && known.restoreSize) {
    patch.restoreSize = formatBytes(BigInt(known.restoreSize));
  }
  const error = known.error ?? null;
  if ((status.error?.message ?? "") !== (error?.message ?? "")) patch.error = error;
  if (!status.volumeGroupSnapshotName && groupName !== undefined) {
    patch.volumeGroupSnapshotName = groupName;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isUnknownSize(size: string | number | undefined): boolean {
  return size === undefined || Number(size) === 0;
}
