/** The volume that a snapshot is made of: from the claim to the handle by which its driver knows it. */
import type {
  CallOptions,
  KubeClient,
  PersistentVolume,
  PersistentVolumeClaim,
  Stored,
} from "@longshore/kube";
import { resources } from "@longshore/kube";
import { isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";

/** Something that a snapshot is to be made of is not as it must be. The text is shown to users. */
export class SnapshotSourceError extends Error {
  override readonly name = "SnapshotSourceError";
}

/** The volume of a claim, in CSI's form. */
export interface SourceVolume {
  readonly pv: Stored<PersistentVolume>;
  readonly driver: string;
  readonly volumeHandle: string;
}

/**
 * The volume behind a claim. One of an in-tree plugin that has a CSI driver is translated: the driver can make
 * snapshots of it, whichever plugin attaches it.
 * @throws SnapshotSourceError unless claim and volume are bound to each other and the volume has a CSI form
 */
export async function sourceVolumeOf(
  kube: KubeClient,
  claim: Stored<PersistentVolumeClaim>,
  options: CallOptions,
): Promise<SourceVolume> {
  const { name: claimName, namespace = "", uid } = claim.metadata;
  if (claim.status?.phase !== "Bound" || !claim.spec?.volumeName) {
    throw new SnapshotSourceError(`claim "${namespace}/${claimName}" is not bound to a volume yet`);
  }
  const pvName = claim.spec.volumeName;
  const pv = await kube.get(resources.persistentVolumes, { name: pvName }, options);
  if (pv === undefined) throw new SnapshotSourceError(`PersistentVolume "${pvName}" not found`);
  const ref = pv.spec?.claimRef;
  const pointsBack = ref?.name === claimName && ref.namespace === namespace && (!ref.uid || ref.uid === uid);
  if (!pointsBack) {
    throw new SnapshotSourceError(
      `PersistentVolume "${pvName}" is not bound to claim "${namespace}/${claimName}"`,
    );
  }
  return csiVolumeOf(pv);
}

/** A volume in CSI's form. @throws SnapshotSourceError when it has none */
export function csiVolumeOf(pv: Stored<PersistentVolume>): SourceVolume {
  const translated = isPVMigratable(pv) ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv;
  const csi = translated.spec?.csi;
  if (!csi?.volumeHandle) {
    throw new SnapshotSourceError(
      `PersistentVolume "${pv.metadata.name}" has no CSI source: no driver makes snapshots of it`,
    );
  }
  return { pv, driver: csi.driver, volumeHandle: csi.volumeHandle };
}
