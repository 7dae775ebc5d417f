/** How a snapshot is, by its driver, and what of that its content does not say yet. Pure. */

import type { MessageShape, Snapshot, SnapshotSchema } from "@longshore/csi";
import { apiTime } from "@longshore/kube";
import type { VolumeSnapshotContentStatus } from "@longshore/storage";

/** A snapshot as the driver described it. */
export interface SnapshotState {
  readonly handle: string;
  readonly ready: boolean;
  /** When it was taken, in nanoseconds since 1970, exact to a microsecond; undefined: the driver did not say. */
  readonly creationTime: number | undefined;
  /** 0: the driver did not say. */
  readonly sizeBytes: number;
  /** Empty: it belongs to no group. */
  readonly groupHandle: string;
}

/** A snapshot of the protocol as state. */
export function snapshotStateOf(snapshot: Snapshot): SnapshotState {
  return {
    handle: snapshot.snapshotId,
    ready: snapshot.readyToUse,
    creationTime: nanoseconds(snapshot.creationTime),
    sizeBytes: Number(snapshot.sizeBytes),
    groupHandle: snapshot.groupSnapshotId,
  };
}

type Timestamp = NonNullable<MessageShape<typeof SnapshotSchema>["creationTime"]>;

/** A time of the protocol in nanoseconds: whole microseconds, which a number can represent distinctly. */
export function nanoseconds(time: Timestamp | undefined): number | undefined {
  if (time === undefined || (time.seconds === 0n && time.nanos === 0)) return undefined;
  return Number((time.seconds * 1_000_000n + BigInt(Math.trunc(time.nanos / 1000))) * 1000n);
}

/** A time of the API (nanoseconds) as text: RFC 3339, whole seconds. */
export function apiTimeOf(creationTimeNs: number): string {
  return apiTime(new Date(Math.floor(creationTimeNs / 1_000_000)));
}

/**
 * What to write into the status of a content, so that it describes the snapshot; undefined: nothing. What is known once
 * does not change; that it is ready, does.
 * @param nowNs stands in for a creation time that the driver does not report
 */
export function statusPatch(
  status: VolumeSnapshotContentStatus | undefined,
  snapshot: SnapshotState,
  nowNs: number,
): Readonly<Record<string, unknown>> | undefined {
  const patch: Record<string, unknown> = {};
  if (status?.snapshotHandle === undefined) patch.snapshotHandle = snapshot.handle;
  if (status?.readyToUse !== snapshot.ready) patch.readyToUse = snapshot.ready;
  if (status?.creationTime === undefined) patch.creationTime = snapshot.creationTime ?? nowNs;
  if (!status?.restoreSize && snapshot.sizeBytes > 0) patch.restoreSize = snapshot.sizeBytes;
  if (status?.volumeGroupSnapshotHandle === undefined && snapshot.groupHandle !== "") {
    patch.volumeGroupSnapshotHandle = snapshot.groupHandle;
  }
  if (status?.error) patch.error = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}
