/**
 * One disk may have two unique names: the in-tree one and that of its CSI equivalent. Its identity is the
 * CSI name where there is one, so that the two are never taken for different disks: an operation, a
 * pod's demand or a mount under one name also counts for the other. Pure. Source: docs/contract.md C1 and C2.
 */
import type { PersistentVolume } from "@longshore/kube";
import { attachmentName, csiUniqueVolumeName } from "@longshore/storage";
import { inTreePVOfVolumeName, migrationGates } from "@longshore/translation";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import { splitUniqueName, type UniqueVolumeName, uniqueNameOf } from "../../framework/unique-volume-name.ts";
import { specOfPersistentVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { csiPluginName, isAttachmentName, parseCsiVolumeName } from "../../plugins/csi/csi-names.ts";

/** The canonical name of a disk. */
export type VolumeIdentity = string;

/** The unique name of the CSI equivalent of a translated spec, or undefined when it has no CSI source. */
export function csiNameOfSpec(spec: VolumeSpec): UniqueVolumeName | undefined {
  const csi = spec.persistentVolume?.spec?.csi;
  return csi == null ? undefined : csiUniqueVolumeName(csi.driver, csi.volumeHandle);
}

/** The CSI form of a spec: itself, its translation, or undefined when it has none. */
export function csiSpecOf(
  migration: Pick<MigratedPluginManager, "inTreePluginOf" | "translateInTreeSpecToCSI">,
  spec: VolumeSpec,
  podNamespace: string,
): VolumeSpec | undefined {
  if (spec.persistentVolume?.spec?.csi != null) return spec;
  if (migration.inTreePluginOf(spec) === undefined) return undefined;
  try {
    return migration.translateInTreeSpecToCSI(spec, podNamespace);
  } catch {
    return undefined;
  }
}

/** The identity behind a unique name, as far as the name alone shows it. */
export function identityOfName(
  migration: Pick<MigratedPluginManager, "inTreePluginOf" | "translateInTreeSpecToCSI">,
  uniqueName: UniqueVolumeName,
): VolumeIdentity {
  const split = trySplit(uniqueName);
  const pv = split === undefined ? undefined : inTreePVOfVolumeName(split.pluginName, split.volumeName);
  if (pv === undefined) return uniqueName;
  const csi = csiSpecOf(migration, specOfPersistentVolume(pv as PersistentVolume, false), "");
  return (csi === undefined ? undefined : csiNameOfSpec(csi)) ?? uniqueName;
}

/** The identities that a PV may be known by: that of its CSI form, else nothing. */
export function identitiesOfVolume(
  migration: Pick<MigratedPluginManager, "inTreePluginOf" | "translateInTreeSpecToCSI">,
  pv: PersistentVolume,
): readonly VolumeIdentity[] {
  const csi = csiSpecOf(migration, specOfPersistentVolume(pv, false), "");
  const identity = csi === undefined ? undefined : csiNameOfSpec(csi);
  return identity === undefined ? [] : [identity];
}

/** The in-tree plugin whose disks have such an identity: by its own name or by its driver's. */
export function inTreePluginOfIdentity(identity: VolumeIdentity): string | undefined {
  return migrationGates.find(
    ({ inTreeName, driverName }) =>
      identity.startsWith(`${inTreeName}/`) || identity.startsWith(csiUniqueVolumeName(driverName, "")),
  )?.inTreeName;
}

/** Name of the VolumeAttachment of a disk whose identity is a CSI name. */
export function csiAttachmentName(identity: string, nodeName: string): string | undefined {
  const prefix = `${csiPluginName}/`;
  if (!identity.startsWith(prefix)) return undefined;
  try {
    const { driver, volumeHandle } = parseCsiVolumeName(identity.slice(prefix.length));
    return attachmentName(volumeHandle, driver, nodeName);
  } catch {
    return undefined;
  }
}

/**
 * What the disk is known by on the node while its volume is missing: the name of its VolumeAttachment, which does not
 * say which disk it is. Undefined: its identity is no CSI name.
 */
export function provisionalIdentity(identity: VolumeIdentity, nodeName: string): VolumeIdentity | undefined {
  const name = csiAttachmentName(identity, nodeName);
  return name === undefined ? undefined : uniqueNameOf(csiPluginName, name);
}

/** Whether it is a {@link provisionalIdentity}. */
export function isProvisional(identity: VolumeIdentity): boolean {
  const prefix = `${csiPluginName}/`;
  return identity.startsWith(prefix) && isAttachmentName(identity.slice(prefix.length));
}

function trySplit(uniqueName: UniqueVolumeName): ReturnType<typeof splitUniqueName> | undefined {
  try {
    return splitUniqueName(uniqueName);
  } catch {
    return undefined;
  }
}
