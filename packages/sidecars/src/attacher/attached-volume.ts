/** Converts a VolumeAttachment into the parameters of the driver's calls: the volume and the node. */
import type {
  CSINode,
  CSIPersistentVolumeSource,
  PersistentVolume,
  PersistentVolumeSpec,
  VolumeAttachment,
} from "@longshore/kube";
import { nodeIdAnnotation, nodeIdOf } from "@longshore/storage";
import { isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";

/** An attachment, or the volume it names, is not as it must be. The text is shown to users. */
export class AttachmentError extends Error {
  override readonly name = "AttachmentError";
}

/** A volume that an attachment names, with a CSI source. */
export interface AttachedVolume {
  readonly spec: PersistentVolumeSpec;
  readonly csi: CSIPersistentVolumeSource;
  /** Whether it is an in-tree volume: inline ones are nothing else. */
  readonly migrated: boolean;
}

/** Where an attachment says its volume is described. @throws AttachmentError unless in exactly one place */
export function sourceOf(
  va: VolumeAttachment,
): { readonly pvName: string } | { readonly inline: PersistentVolumeSpec } {
  const { persistentVolumeName, inlineVolumeSpec } = va.spec?.source ?? {};
  if (persistentVolumeName && inlineVolumeSpec) {
    throw new AttachmentError(
      "spec.source names a PersistentVolume and holds an inline volume: it may have one only",
    );
  }
  if (persistentVolumeName) return { pvName: persistentVolumeName };
  if (inlineVolumeSpec) return { inline: inlineVolumeSpec };
  throw new AttachmentError("spec.source is empty: it must name a PersistentVolume or hold an inline volume");
}

/**
 * The volume in CSI's form. An in-tree one is translated whatever its annotations say: that
 * the attachment names our driver is reason enough (docs/behaviour/sidecars.md 3.1).
 * @throws AttachmentError when it has no CSI source and cannot get one
 */
export function volumeOfPv(pv: PersistentVolume): AttachedVolume {
  const migrated = isPVMigratable(pv);
  const translated: PersistentVolume = migrated ? (translateInTreePVToCSI(pv) as PersistentVolume) : pv;
  const where = `PersistentVolume "${pv.metadata?.name ?? ""}"`;
  return { ...volumeOfSpec(translated.spec ?? {}, where), migrated };
}

/** The volume of an inline spec, which its maker has translated already. @throws AttachmentError */
export function volumeOfSpec(
  spec: PersistentVolumeSpec,
  where = "spec.source.inlineVolumeSpec",
): AttachedVolume {
  const { csi } = spec;
  if (csi === undefined || csi === null) throw new AttachmentError(`${where} has no CSI source`);
  if (csi.volumeHandle === "") throw new AttachmentError(`${where}: spec.csi.volumeHandle is empty`);
  return { spec, csi, migrated: true };
}

/**
 * The id by which the driver knows the node; undefined when neither its CSINode nor `remembered` names it.
 * @param remembered the attachment, whose annotation stands in when the node's CSINode is gone: for detaching only
 */
export function knownNodeId(
  csiNode: CSINode | undefined,
  driver: string,
  remembered?: VolumeAttachment,
): string | undefined {
  return nodeIdOf(csiNode, driver) ?? remembered?.metadata?.annotations?.[nodeIdAnnotation];
}

/** What is wrong where {@link knownNodeId} finds nothing. */
export function nodeIdMissing(
  csiNode: CSINode | undefined,
  driver: string,
  nodeName: string,
): AttachmentError {
  return new AttachmentError(
    csiNode === undefined
      ? `CSINode "${nodeName}" not found`
      : `CSINode "${nodeName}" does not contain driver ${driver}`,
  );
}
