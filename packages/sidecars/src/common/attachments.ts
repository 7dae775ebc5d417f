/** Which volume an attachment is about. */
import type { Stored, VolumeAttachment } from "@longshore/kube";

/** The PersistentVolume that an attachment names, if it names one. */
export function volumeNameOf(va: VolumeAttachment): string | undefined {
  return va.spec?.source?.persistentVolumeName || undefined;
}

/** Index of attachments by the PersistentVolume they name. */
export const byVolume = (va: Stored<VolumeAttachment>): readonly string[] => {
  const name = volumeNameOf(va);
  return name === undefined ? [] : [name];
};
