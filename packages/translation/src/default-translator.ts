/** The translator over all eight plugins, its methods as plain functions. */

import type { InTreePlugin } from "./in-tree-plugin.ts";
import { awsEbs } from "./plugins/aws-ebs.ts";
import { azureDisk } from "./plugins/azure-disk.ts";
import { azureFile } from "./plugins/azure-file.ts";
import { cinder } from "./plugins/cinder.ts";
import { gcePd } from "./plugins/gce-pd.ts";
import { portworx } from "./plugins/portworx.ts";
import { rbd } from "./plugins/rbd.ts";
import { vsphere } from "./plugins/vsphere.ts";
import { createTranslator, type ExplainingTranslator, type Restored, type Translator } from "./translator.ts";
import type { PersistentVolume, StorageClass, Volume } from "./types.ts";

/** The seven plugins that every release of the reference library since 1.23 has. */
export const corePlugins: readonly InTreePlugin[] = [
  awsEbs,
  gcePd,
  azureDisk,
  azureFile,
  cinder,
  vsphere,
  portworx,
];

/** All eight plugins. */
export const allPlugins: readonly InTreePlugin[] = [...corePlugins, rbd];

/** The translator behind the plain functions. */
export const defaultTranslator: Translator = createTranslator({ plugins: allPlugins });

/** The translations with their explanation, over all eight plugins. */
export const explain: ExplainingTranslator = defaultTranslator.explain;

/** See {@link Translator.translateInTreePVToCSI}. @throws TranslationError */
export function translateInTreePVToCSI<T extends PersistentVolume>(
  pv: T | null | undefined,
): T & PersistentVolume {
  return defaultTranslator.translateInTreePVToCSI(pv);
}

/** See {@link Translator.translateCSIPVToInTree}. @throws TranslationError */
export function translateCSIPVToInTree<T extends PersistentVolume>(
  pv: T | null | undefined,
): T & PersistentVolume {
  return defaultTranslator.translateCSIPVToInTree(pv);
}

/** See {@link Translator.restoreInTreePV}. @throws TranslationError */
export function restoreInTreePV<T extends PersistentVolume>(
  pv: T | null | undefined,
): Restored<T & PersistentVolume> {
  return defaultTranslator.restoreInTreePV(pv);
}

/** See {@link Translator.checkInTreePV}. @throws TranslationError */
export function checkInTreePV(pv: PersistentVolume): void {
  defaultTranslator.checkInTreePV(pv);
}

/** See {@link Translator.checkInlineVolume}. @throws TranslationError */
export function checkInlineVolume(volume: Volume): void {
  defaultTranslator.checkInlineVolume(volume);
}

/** See {@link Translator.translateInTreeInlineVolumeToCSI}. @throws TranslationError */
export function translateInTreeInlineVolumeToCSI(
  volume: Volume | null | undefined,
  podNamespace?: string,
): PersistentVolume {
  return defaultTranslator.translateInTreeInlineVolumeToCSI(volume, podNamespace);
}

/** See {@link Translator.translateInTreeStorageClassToCSI}. @throws TranslationError */
export function translateInTreeStorageClassToCSI<T extends StorageClass>(
  inTreePluginName: string,
  storageClass: T | null | undefined,
): T & StorageClass {
  return defaultTranslator.translateInTreeStorageClassToCSI(inTreePluginName, storageClass);
}

/** See {@link Translator.isMigratableIntreePluginByName}. */
export function isMigratableIntreePluginByName(inTreePluginName: string): boolean {
  return defaultTranslator.isMigratableIntreePluginByName(inTreePluginName);
}

/** See {@link Translator.isMigratedCSIDriverByName}. */
export function isMigratedCSIDriverByName(csiPluginName: string): boolean {
  return defaultTranslator.isMigratedCSIDriverByName(csiPluginName);
}

/** See {@link Translator.getInTreePluginNameFromSpec}. @throws TranslationError */
export function getInTreePluginNameFromSpec(
  pv: PersistentVolume | null | undefined,
  volume: Volume | null | undefined,
): string {
  return defaultTranslator.getInTreePluginNameFromSpec(pv, volume);
}

/** See {@link Translator.getCSINameFromInTreeName}. @throws TranslationError */
export function getCSINameFromInTreeName(pluginName: string): string {
  return defaultTranslator.getCSINameFromInTreeName(pluginName);
}

/** See {@link Translator.getInTreeNameFromCSIName}. @throws TranslationError */
export function getInTreeNameFromCSIName(pluginName: string): string {
  return defaultTranslator.getInTreeNameFromCSIName(pluginName);
}

/** See {@link Translator.isPVMigratable}. */
export function isPVMigratable(pv: PersistentVolume | null | undefined): boolean {
  return defaultTranslator.isPVMigratable(pv);
}

/** See {@link Translator.isInlineMigratable}. */
export function isInlineMigratable(volume: Volume | null | undefined): boolean {
  return defaultTranslator.isInlineMigratable(volume);
}

/**
 * A PersistentVolume with the in-tree source that a plugin's own name of a volume stands for, and nothing else; undefined where
 * the name does not say which disk it is.
 */
export function inTreePVOfVolumeName(
  inTreePluginName: string,
  volumeName: string,
): PersistentVolume | undefined {
  const plugin = allPlugins.find(({ inTreeName }) => inTreeName === inTreePluginName);
  if (plugin?.volumeNameField === undefined) return undefined;
  return { metadata: { name: "" }, spec: { [plugin.source]: { [plugin.volumeNameField]: volumeName } } };
}

/** See {@link Translator.repairVolumeHandle}. @throws TranslationError */
export function repairVolumeHandle(driverName: string, volumeHandle: string, nodeID: string): string {
  return defaultTranslator.repairVolumeHandle(driverName, volumeHandle, nodeID);
}

/** The design's name for {@link translateInTreeInlineVolumeToCSI}. */
export const translateInTreeInlineVolumeToPVSpec = translateInTreeInlineVolumeToCSI;

/** The design's name for {@link isMigratableIntreePluginByName}. */
export const isMigratableByName = isMigratableIntreePluginByName;

/** The design's name for {@link getCSINameFromInTreeName}. */
export const getCSINameFromIntreeName = getCSINameFromInTreeName;
