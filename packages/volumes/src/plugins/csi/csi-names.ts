/** Reading the names of CSI volumes, which `@longshore/storage` makes. Source: docs/behaviour/csi-plugin.md 1 and 2. */
import type { CSIPersistentVolumeSource } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";

/** The plugin's name. */
export const csiPluginName = "kubernetes.io/csi";

/** Between driver and handle in a volume's name. */
const separator = "^";

/** The spec or name is not one of a CSI volume. */
export class CsiVolumeError extends Error {
  override readonly name = "CsiVolumeError";
}

/** The CSI source of a PersistentVolume. @throws CsiVolumeError when the spec has none */
export function csiSourceOf(spec: VolumeSpec): CSIPersistentVolumeSource {
  const source = spec.persistentVolume?.spec?.csi;
  if (source == null) {
    throw new CsiVolumeError(`volume "${specName(spec)}": spec.persistentVolume.spec.csi is missing`);
  }
  return source;
}

/** The reverse of `csiVolumeName`; a driver's name has no `^`, so whatever follows the first is the handle. @throws CsiVolumeError */
export function parseCsiVolumeName(volumeName: string): {
  readonly driver: string;
  readonly volumeHandle: string;
} {
  const at = volumeName.indexOf(separator);
  if (at <= 0 || at === volumeName.length - 1) {
    throw new CsiVolumeError(`volumeName missing expected data: "${volumeName}" is not <driver>^<handle>`);
  }
  return { driver: volumeName.slice(0, at), volumeHandle: volumeName.slice(at + 1) };
}

/** Whether the text looks like the name of a VolumeAttachment. */
export function isAttachmentName(text: string): boolean {
  return text.startsWith("csi-") && text.length === 68;
}

/**
 * Name of the VolumeAttachment of a volume on a node. @param volumeName the plugin's name of it, or the name itself
 * @throws CsiVolumeError for anything else
 */
export function attachmentOfVolume(volumeName: string, nodeName: string): string {
  if (isAttachmentName(volumeName)) return volumeName;
  const { driver, volumeHandle } = parseCsiVolumeName(volumeName);
  return attachmentName(volumeHandle, driver, nodeName);
}
