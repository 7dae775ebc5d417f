/**
 * Pure functions between in-tree volume objects and CSI ones.
 *
 * The only place where an in-tree field becomes a CSI field. No clock, no client, no log, no dependency; it
 * never mutates its input and runs in a browser.
 */

export type { DroppedField } from "./check-restored.ts";
export {
  allPlugins,
  checkInlineVolume,
  checkInTreePV,
  corePlugins,
  defaultTranslator,
  explain,
  getCSINameFromInTreeName,
  getCSINameFromIntreeName,
  getInTreeNameFromCSIName,
  getInTreePluginNameFromSpec,
  inTreePVOfVolumeName,
  isInlineMigratable,
  isMigratableByName,
  isMigratableIntreePluginByName,
  isMigratedCSIDriverByName,
  isPVMigratable,
  repairVolumeHandle,
  restoreInTreePV,
  translateCSIPVToInTree,
  translateInTreeInlineVolumeToCSI,
  translateInTreeInlineVolumeToPVSpec,
  translateInTreePVToCSI,
  translateInTreeStorageClassToCSI,
} from "./default-translator.ts";
export type { InTreePlugin } from "./in-tree-plugin.ts";
export { globalMigrationGate, type MigrationGates, migrationGates } from "./migration-gates.ts";
export { awsEbs } from "./plugins/aws-ebs.ts";
export { azureDisk } from "./plugins/azure-disk.ts";
export { azureFile } from "./plugins/azure-file.ts";
export { cinder } from "./plugins/cinder.ts";
export { gcePd } from "./plugins/gce-pd.ts";
export { portworx } from "./plugins/portworx.ts";
export { rbd } from "./plugins/rbd.ts";
export { vsphere } from "./plugins/vsphere.ts";
export type { SourceField, SourceFields } from "./source-fields.ts";
export type { Trace, TraceStep } from "./trace.ts";
export { TranslationError } from "./translation-error.ts";
export {
  createTranslator,
  type Explained,
  type ExplainingTranslator,
  type Restored,
  type Translator,
} from "./translator.ts";
export type {
  AWSElasticBlockStoreSource,
  AzureDiskSource,
  AzureFileSource,
  CinderSource,
  CSIPersistentVolumeSource,
  Draft,
  DraftMap,
  GCEPersistentDiskSource,
  InTreeSourceName,
  InTreeSources,
  LocalObjectReference,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeSpec,
  PortworxVolumeSource,
  RBDSource,
  SecretReference,
  StorageClass,
  StringMap,
  TopologySelectorLabelRequirement,
  TopologySelectorTerm,
  Volume,
  VolumeNodeAffinity,
  VsphereVirtualDiskSource,
} from "./types.ts";
