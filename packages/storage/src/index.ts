/** Where Kubernetes and CSI meet: capabilities, secrets, names, topology. Pure functions, no controller. */

export {
  type AccessibilityRequirements,
  accessibilityRequirements,
  pvcNameHash,
  TopologyError,
  type TopologyMemory,
  type TopologyQuestion,
} from "./accessibility-requirements.ts";
export { migratedPluginsOf, nodeIdOf, topologyKeysOf } from "./csi-node.ts";
export {
  diskFinalizersOf,
  isDeletedWithClaim,
  isMadeInTree,
  standsForInTreeFinalizer,
} from "./disk-finalizers.ts";
export {
  attacherFinalizer,
  attachmentName,
  attachmentNameByPV,
  csiDriverNameErrors,
  csiUniqueVolumeName,
  csiVolumeName,
  type ElectedSidecar,
  generateVolumeName,
  inlineVolumeHandle,
  isDns1123Label,
  isDns1123Subdomain,
  leaseName,
  NameError,
  snapshotContentName,
  snapshotName,
  volumeName,
} from "./names.ts";
export { resolveTemplate, TemplateError } from "./resolve-template.ts";
export { restoredObjects } from "./restored-objects.ts";
export {
  fsTypeOf,
  ParameterError,
  type SecretKind,
  secretKinds,
  secretReference,
  stripParameters,
  type TemplateClaim,
} from "./secret-reference.ts";
export { snapshotCrdsUrl } from "./snapshot-crds.ts";
export {
  type SnapshotSecretKind,
  type SnapshotTemplateValues,
  snapshotSecretReference,
  stripSnapshotParameters,
} from "./snapshot-parameters.ts";
export {
  type SnapshotDeletionPolicy,
  type SnapshotError,
  type SnapshotReference,
  type SnapshotSelector,
  snapshotGroup,
  snapshotResources,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  type VolumeGroupSnapshotContentStatus,
  type VolumeGroupSnapshotStatus,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
  type VolumeSnapshotContentStatus,
  type VolumeSnapshotInfo,
  type VolumeSnapshotStatus,
} from "./snapshot-resources.ts";
export {
  allowVolumeModeChangeAnnotation,
  beingCreatedAnnotation,
  beingDeletedAnnotation,
  contentFinalizer,
  defaultGroupSnapshotClassAnnotation,
  defaultSnapshotClassAnnotation,
  groupBeingCreatedAnnotation,
  groupBeingDeletedAnnotation,
  groupContentFinalizer,
  groupHandleAnnotation,
  groupSnapshotFinalizer,
  groupSnapshotSecretNameAnnotation,
  groupSnapshotSecretNamespaceAnnotation,
  managedByLabel,
  snapshotBoundFinalizer,
  snapshotClaimFinalizer,
  snapshotInGroupFinalizer,
  snapshotSecretNameAnnotation,
  snapshotSecretNamespaceAnnotation,
  snapshotSourceFinalizer,
} from "./snapshot-well-known.ts";
export { pluginsChangingOver, uncertainVolumesOf, uncertainVolumesText } from "./uncertain-volumes.ts";
export {
  AccessModeError,
  type AccessModeSupport,
  attachAccessMode,
  attachCapability,
  type CapabilityInit,
  claimCapabilities,
  csiAccessMode,
} from "./volume-capability.ts";
export { type Segments, volumeIsAccessible, volumeNodeAffinity } from "./volume-node-affinity.ts";
export {
  betaStorageClassAnnotation,
  betaStorageProvisionerAnnotation,
  changingOverAnnotation,
  cloningProtectionFinalizer,
  deletionSecretNameAnnotation,
  deletionSecretNamespaceAnnotation,
  inTreeDeletionFinalizer,
  madeByAnnotation,
  migratedPluginsAnnotation,
  migratedToAnnotation,
  migrationPendingCondition,
  modifySecretNameAnnotation,
  modifySecretNamespaceAnnotation,
  nodeExpansionNotRequiredAnnotation,
  nodeIdAnnotation,
  preResizeCapacityAnnotation,
  provisionedByAnnotation,
  provisionerFinalizer,
  provisioningFinalizer,
  selectedNodeAnnotation,
  snapshotSourceProtectionFinalizer,
  storageProvisionerAnnotation,
  storageProvisionerOf,
  storageResizerAnnotation,
  uncertainVolumesAnnotation,
} from "./well-known.ts";
