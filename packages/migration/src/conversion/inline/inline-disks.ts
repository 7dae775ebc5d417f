/** Which disk an inline volume stands for, and by which names nodes know it. Pure. */
import type { PersistentVolume } from "@longshore/kube";
import {
  getCSINameFromInTreeName,
  getInTreePluginNameFromSpec,
  isInlineMigratable,
  translateInTreeInlineVolumeToCSI,
  type Volume,
} from "@longshore/translation";
import { diskKeyOf } from "../../crossing/disk-key.ts";
import { uniqueNamesOf, volumeFormOf } from "../../crossing/volume-form.ts";

/**
 * As {@link diskKeyOf}, of an in-tree volume that a pod describes itself; undefined for one that cannot be converted.
 * @param namespace of the pod: the handle of an Azure share has it
 */
export function inlineDiskKey(volume: Volume, namespace: string): string | undefined {
  const translated = translatedInline(volume, namespace);
  return translated === undefined ? undefined : diskKeyOf(translated);
}

/** In-tree name of the plugin, and its driver. The volume can be migrated. */
export function inlinePluginOf(volume: Volume): { readonly plugin: string; readonly driver: string } {
  const plugin = getInTreePluginNameFromSpec(null, volume);
  return { plugin, driver: getCSINameFromInTreeName(plugin) };
}

/** The names that nodes may have the disk by: that of the in-tree plugin, and that of the driver. */
export function inlineDiskNames(before: Volume, volume: PersistentVolume): readonly string[] {
  // A PersistentVolume has the source in the same form, as far as its name goes.
  const { name: _, ...source } = before;
  const inTree = volumeFormOf({ spec: source } as PersistentVolume);
  return [...new Set([...uniqueNamesOf(inTree), ...uniqueNamesOf(volumeFormOf(volume))])];
}

function translatedInline(volume: Volume, namespace: string): PersistentVolume | undefined {
  if (!isInlineMigratable(volume)) return undefined;
  try {
    return translateInTreeInlineVolumeToCSI(volume, namespace) as PersistentVolume;
  } catch {
    return undefined;
  }
}
