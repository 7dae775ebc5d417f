/** Which snapshot a volume is restored from, and when it may be (docs/behaviour/sidecars.md 2.3, point 8). Pure. */
import { isDeleting, type PersistentVolumeClaim, parseQuantity } from "@longshore/kube";
import {
  allowVolumeModeChangeAnnotation,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import { isIntended } from "../claim-writes.ts";
import { DataSourceError } from "./clone-source.ts";

/** What is asked besides the snapshot itself. */
export interface RestoreQuestion {
  readonly driverName: string;
  readonly claim: PersistentVolumeClaim;
  /** Changing the volume mode needs an annotation on the snapshot content (`--prevent-volume-mode-conversion`). */
  readonly preventModeConversion: boolean;
}

/**
 * The content that the snapshot is bound to. A restore that was begun is brought to its end though the snapshot is being
 * deleted meanwhile.
 * @throws DataSourceError
 */
export function contentNameOf(claim: PersistentVolumeClaim, snapshot: VolumeSnapshot): string {
  const name = snapshot.metadata?.name ?? "";
  if (isDeleting(snapshot) && !isIntended(claim))
    throw new DataSourceError(`the snapshot ${name} is being deleted`);
  const contentName = snapshot.status?.boundVolumeSnapshotContentName;
  if (!contentName) throw notBound(name);
  return contentName;
}

/** The handle of the snapshot. @throws DataSourceError */
export function snapshotHandle(
  { driverName, claim, preventModeConversion }: RestoreQuestion,
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
): string {
  const { name = "", namespace, uid } = snapshot.metadata ?? {};
  const ref = content?.spec.volumeSnapshotRef;
  const pointsBack = ref?.uid === uid && ref?.name === name && ref?.namespace === namespace;
  if (content === undefined || !pointsBack) throw notBound(name);
  if (content.spec.driver !== driverName) {
    throw new DataSourceError(
      `the snapshot ${name} is of the driver ${content.spec.driver}, not ${driverName}`,
    );
  }
  if (snapshot.status?.readyToUse !== true) throw new DataSourceError(`the snapshot ${name} is not ready`);
  const handle = content.status?.snapshotHandle;
  if (!handle) throw new DataSourceError(`the snapshot ${name} has no handle yet`);
  checkSize(claim, snapshot);
  if (preventModeConversion) checkMode(claim, content);
  return handle;
}

function checkSize(claim: PersistentVolumeClaim, { metadata, status }: VolumeSnapshot): void {
  if (status?.restoreSize === undefined || status.restoreSize === null) return;
  const least = parseQuantity(String(status.restoreSize)).toBytes();
  const size = claim.spec?.resources?.requests?.storage;
  const wanted = size === undefined ? 0n : parseQuantity(size).toBytes();
  if (wanted < least) {
    throw new DataSourceError(
      `${wanted} bytes are requested and the snapshot ${metadata?.name} needs ${least}: request at least as many`,
    );
  }
}

function checkMode(claim: PersistentVolumeClaim, { metadata, spec }: VolumeSnapshotContent): void {
  const wanted = claim.spec?.volumeMode ?? "Filesystem";
  if (!spec.sourceVolumeMode || spec.sourceVolumeMode === wanted) return;
  if (metadata?.annotations?.[allowVolumeModeChangeAnnotation] === "true") return;
  throw new DataSourceError(
    `volume mode ${wanted} is requested and the snapshot was taken of a volume of mode ${spec.sourceVolumeMode}: an administrator can allow that with the annotation ${allowVolumeModeChangeAnnotation} on the VolumeSnapshotContent ${metadata?.name}`,
  );
}

function notBound(name: string): DataSourceError {
  return new DataSourceError(`the snapshot ${name} is not bound to a content`);
}
