/**
 * What snapshots of a claim have against its conversion. A snapshot names the claim, and its content the disk by the driver's
 * handle: both are the same after a conversion, so that the snapshots stay usable. Pure. Source: snapshot.storage.k8s.io/v1.
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { VolumeSnapshot } from "@longshore/storage";
import { diskKeyOf } from "../crossing/disk-key.ts";
import type { ConversionIndex } from "./conversion-index.ts";
import type { Refusal } from "./conversion-types.ts";

/** @param converted the PersistentVolume that the claim gets */
export function snapshotRefusals(
  claim: Stored<PersistentVolumeClaim>,
  converted: PersistentVolume,
  index: ConversionIndex,
): readonly Refusal[] {
  return index.snapshotsOf(claim).flatMap((snapshot) => {
    const refusal = unready(snapshot, claim) ?? mismatch(snapshot, converted, index);
    return refusal === undefined ? [] : [refusal];
  });
}

/** A snapshot that is being taken needs the volume as it is. */
function unready(
  snapshot: Stored<VolumeSnapshot>,
  claim: Stored<PersistentVolumeClaim>,
): Refusal | undefined {
  const { status } = snapshot;
  if (status?.readyToUse === true) return undefined;
  const failure = status?.error?.message;
  const why = failure === undefined ? "" : `; its last error: ${failure}`;
  return {
    code: "snapshot",
    object: textOf(snapshot),
    field: "status.readyToUse",
    reason: `it is being taken of claim ${claim.metadata.name}${why}`,
    remedy: "wait until it is ready, or delete it",
  };
}

/** A snapshot of another disk or of another driver than the claim will have: what is restored from it is not what it says. */
function mismatch(
  snapshot: Stored<VolumeSnapshot>,
  { spec }: PersistentVolume,
  index: ConversionIndex,
): Refusal | undefined {
  const name = snapshot.status?.boundVolumeSnapshotContentName ?? "";
  const content = index.contentOf(snapshot);
  if (content === undefined) {
    return {
      code: "snapshot",
      object: textOf(snapshot),
      field: "status.boundVolumeSnapshotContentName",
      reason: name === "" ? "it names no content" : `its VolumeSnapshotContent ${name} is not there`,
      remedy: "create the content again from a backup, or delete the snapshot",
    };
  }
  const object = `VolumeSnapshotContent ${name}`;
  const { driver, source, volumeSnapshotRef } = content.spec;
  if (volumeSnapshotRef.uid !== undefined && volumeSnapshotRef.uid !== snapshot.metadata.uid) {
    return {
      code: "snapshot",
      object,
      field: "spec.volumeSnapshotRef.uid",
      reason: `it is the content of another snapshot than ${textOf(snapshot)}`,
      remedy: "delete the snapshot, and take it again",
    };
  }
  const csi = spec?.csi;
  if (driver !== csi?.driver) {
    return {
      code: "snapshot",
      object,
      field: "spec.driver",
      reason: `it is ${driver}, which cannot restore to volumes of ${csi?.driver}`,
      remedy: `delete ${textOf(snapshot)}, or create it from a content of ${csi?.driver} with the snapshot's handle there`,
    };
  }
  // One that was imported names the snapshot alone: of which disk it is, only the driver knows.
  const handle = source.volumeHandle;
  if (handle === undefined || isSameDisk(handle, csi)) return undefined;
  return {
    code: "snapshot",
    object,
    field: "spec.source.volumeHandle",
    reason: `it is ${handle}, and the claim of ${textOf(snapshot)} has the disk ${csi?.volumeHandle}`,
    remedy:
      "see how the claim came to another disk; delete the snapshot if it is not needed, or give it a claim of its own",
  };
}

/** The forms of a handle that name one disk count as one. */
function isSameDisk(volumeHandle: string, csi: NonNullable<PersistentVolume["spec"]>["csi"]): boolean {
  if (csi === undefined) return false;
  const keyOf = (handle: string) => diskKeyOf({ spec: { csi: { ...csi, volumeHandle: handle } } });
  return keyOf(volumeHandle) === keyOf(csi.volumeHandle);
}

const textOf = ({ metadata }: Stored<VolumeSnapshot>): string =>
  `VolumeSnapshot ${metadata.namespace}/${metadata.name}`;
