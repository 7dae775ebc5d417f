/** How a group snapshot is, by its driver, and what of that its content does not say yet. Pure. */
import type { VolumeGroupSnapshot as DriverGroup } from "@longshore/csi";
import type { VolumeGroupSnapshotContentStatus, VolumeSnapshotInfo } from "@longshore/storage";
import { apiTimeOf, nanoseconds } from "./snapshot-state.ts";

/** A group snapshot as the driver described it. */
export interface GroupState {
  readonly handle: string;
  readonly ready: boolean;
  /** In nanoseconds since 1970; undefined: the driver did not say. */
  readonly creationTime: number | undefined;
  readonly snapshots: readonly VolumeSnapshotInfo[];
}

/** A group snapshot of the protocol as state. */
export function groupStateOf(group: DriverGroup): GroupState {
  return {
    handle: group.groupSnapshotId,
    ready: group.readyToUse,
    creationTime: nanoseconds(group.creationTime),
    snapshots: group.snapshots.map((snapshot) => {
      const creationTime = nanoseconds(snapshot.creationTime);
      return {
        volumeHandle: snapshot.sourceVolumeId,
        snapshotHandle: snapshot.snapshotId,
        readyToUse: snapshot.readyToUse,
        ...(creationTime === undefined ? {} : { creationTime }),
        ...(snapshot.sizeBytes > 0n ? { restoreSize: Number(snapshot.sizeBytes) } : {}),
      };
    }),
  };
}

/**
 * What to write into the status of a content, so that it describes the group; undefined: nothing.
 * @param withPairs the API is `v1beta1`, whose contents list pairs of handles instead of what is known of each
 */
export function groupStatusPatch(
  status: VolumeGroupSnapshotContentStatus | undefined,
  group: GroupState,
  nowNs: number,
  withPairs: boolean,
): Readonly<Record<string, unknown>> | undefined {
  const patch: Record<string, unknown> = {};
  if (status?.volumeGroupSnapshotHandle === undefined) patch.volumeGroupSnapshotHandle = group.handle;
  if (status?.readyToUse !== group.ready) patch.readyToUse = group.ready;
  if (status?.creationTime === undefined) patch.creationTime = apiTimeOf(group.creationTime ?? nowNs);
  if (group.snapshots.length > 0) Object.assign(patch, membersPatch(status, group.snapshots, withPairs));
  if (status?.error) patch.error = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function membersPatch(
  status: VolumeGroupSnapshotContentStatus | undefined,
  snapshots: readonly VolumeSnapshotInfo[],
  withPairs: boolean,
): Readonly<Record<string, unknown>> {
  if (withPairs) {
    const pairs = snapshots.map(({ volumeHandle, snapshotHandle }) => ({ volumeHandle, snapshotHandle }));
    return (status?.volumeSnapshotHandlePairList ?? []).length > 0
      ? {}
      : { volumeSnapshotHandlePairList: pairs };
  }
  const known = status?.volumeSnapshotInfoList ?? [];
  const isSame =
    known.length === snapshots.length &&
    snapshots.every(
      ({ snapshotHandle, readyToUse }, at) =>
        known[at]?.snapshotHandle === snapshotHandle && known[at]?.readyToUse === readyToUse,
    );
  return isSame ? {} : { volumeSnapshotInfoList: snapshots };
}
