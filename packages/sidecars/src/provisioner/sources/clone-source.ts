/** Which volume a clone is made from, and when it may be (docs/behaviour/sidecars.md 2.3, point 8). Pure. */
import {
  isDeleting,
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseQuantity,
} from "@longshore/kube";
import { isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";
import { isIntended } from "../claim-writes.ts";

/** The source cannot be used as it is now. The text is shown to users. */
export class DataSourceError extends Error {
  override readonly name = "DataSourceError";
}

/**
 * Checks on the two claims that the source may be cloned into `claim`. A clone that was begun is finished even when the
 * source is being deleted: the deletion waits for the clone.
 * @throws DataSourceError
 */
export function checkCloneClaims(claim: PersistentVolumeClaim, source: PersistentVolumeClaim): void {
  const name = source.metadata?.name ?? "";
  if (isDeleting(source) && !isIntended(claim)) throw new DataSourceError(`the PVC ${name} is being deleted`);
  if (source.status?.phase !== "Bound" || !source.spec?.volumeName) {
    throw new DataSourceError(`the PVC ${name} is ${source.status?.phase ?? "Pending"}: it must be Bound`);
  }
  if (source.spec.storageClassName === undefined || source.spec.storageClassName === null) {
    throw new DataSourceError(`the PVC ${name} has no storage class: it was not provisioned`);
  }
  const [wanted, given] = [requestOf(claim), requestOf(source)];
  if (wanted < given) {
    throw new DataSourceError(
      `${wanted} bytes are requested and the PVC ${name} has ${given}: request at least as many`,
    );
  }
}

/**
 * The handle of the volume behind the source claim; an in-tree volume of a migrated plugin is the driver's, too.
 * @throws DataSourceError
 */
export function cloneHandle(
  driverName: string,
  claim: PersistentVolumeClaim,
  source: PersistentVolumeClaim,
  sourceVolume: PersistentVolume | undefined,
): string {
  const ref = sourceVolume?.spec?.claimRef;
  const isBound =
    ref?.uid === source.metadata?.uid &&
    ref?.name === source.metadata?.name &&
    ref?.namespace === source.metadata?.namespace &&
    sourceVolume?.status?.phase === "Bound";
  if (sourceVolume === undefined || !isBound) {
    throw new DataSourceError(
      `the PVC ${source.metadata?.name} is not bound to the volume ${source.spec?.volumeName}`,
    );
  }
  if (isDeleting(sourceVolume)) {
    throw new DataSourceError(`the volume ${sourceVolume.metadata?.name} is being deleted`);
  }
  const csiVolume = isPVMigratable(sourceVolume)
    ? (translateInTreePVToCSI(sourceVolume) as PersistentVolume)
    : sourceVolume;
  const csi = csiVolume.spec?.csi;
  if (csi?.driver !== driverName) {
    throw new DataSourceError(
      `the volume ${sourceVolume.metadata?.name} is not of the driver ${driverName}: it cannot be cloned by it`,
    );
  }
  const [wanted, given] = [modeOf(claim.spec?.volumeMode), modeOf(sourceVolume.spec?.volumeMode)];
  if (wanted !== given) {
    throw new DataSourceError(
      `volume mode ${wanted} is requested and the PVC ${source.metadata?.name} has ${given}: request the same`,
    );
  }
  return csi.volumeHandle;
}

const modeOf = (volumeMode: string | undefined) => volumeMode ?? "Filesystem";

function requestOf(claim: PersistentVolumeClaim): bigint {
  const size = claim.spec?.resources?.requests?.storage;
  return size === undefined ? 0n : parseQuantity(size).toBytes();
}
