/**
 * The volume subsystem: its controllers, the volumes of a node, the gates that migrate a plugin to CSI, and what a plugin
 * and a provider of disks implement.
 */
export {
  type AttachDetachEnv,
  type AttachDetachOptions,
  startAttachDetachController,
} from "./controllers/attach-detach/attach-detach-controller.ts";
export { claimOfPodVolume, isClaimForPod } from "./controllers/attach-detach/build-pod-volume.ts";
export { outOfServiceTaint } from "./controllers/attach-detach/detach-guards.ts";
export {
  type EphemeralVolumeEnv,
  startEphemeralVolumeController,
} from "./controllers/ephemeral/ephemeral-volume-controller.ts";
export {
  type ExpandEnv,
  type ExpandOptions,
  startExpandController,
} from "./controllers/expand/expand-controller.ts";
export {
  boundByControllerAnnotation,
  classOfClaim,
  classOfVolume,
} from "./controllers/persistent-volume/annotations.ts";
export { bestVolume } from "./controllers/persistent-volume/match-volume.ts";
export {
  type PersistentVolumeEnv,
  type PersistentVolumeOptions,
  startPersistentVolumeController,
} from "./controllers/persistent-volume/persistent-volume-controller.ts";
export {
  type ProtectionEnv,
  startProtectionControllers,
} from "./controllers/protection/protection-controllers.ts";
export {
  createMigratedPluginManager,
  type GateRow,
  gateDependencyWarnings,
  gateTable,
  type MigratedPluginManager,
  registeredInTreePlugins,
  SpecTranslationError,
  volumeGates,
  volumeGatesFor,
} from "./csimigration/index.ts";
export { DanglingAttachError, DeletedVolumeInUseError } from "./framework/controller-errors.ts";
export type { DynamicPluginProber, PluginEvent } from "./framework/dynamic-plugin-prober.ts";
export {
  FailedPreconditionError,
  TransientOperationError,
  UncertainProgressError,
} from "./framework/node-error-kind.ts";
export type { PluginNodeHalf, PluginNodeHalfOptions } from "./framework/plugin-node-half.ts";
export {
  type CloudAttachOptions,
  type CloudCaller,
  type CloudCredentials,
  CloudError,
  type CloudErrorCode,
  type CloudProvider,
  type ContainerRuntime,
  cloudProviders,
  type Disk,
  type DiskAttachment,
  type DiskCloud,
  type Instance,
} from "./framework/ports.ts";
export {
  type AttachDetachVolumeHost,
  type KubeletVolumeHost,
  kubeletPaths,
  type VolumeHost,
} from "./framework/volume-host.ts";
export type {
  AllowedTopologies,
  AttachableVolumePlugin,
  Attacher,
  AttachmentListingVolumePlugin,
  DeletableVolumePlugin,
  Deleter,
  Detacher,
  DeviceMountableVolumePlugin,
  DeviceMounter,
  DeviceUnmounter,
  ExpandableVolumePlugin,
  InTreeAttachableVolumePlugin,
  InTreeAttacher,
  ListedAttachment,
  Mounter,
  MounterArgs,
  NodeExpandableVolumePlugin,
  NodeExpandOptions,
  ProvisionableVolumePlugin,
  Provisioner,
  Unmounter,
  VolumeOptions,
  VolumePlugin,
} from "./framework/volume-plugin.ts";
export { hasAttachLimits } from "./framework/volume-plugin.ts";
export type { VolumeSpec } from "./framework/volume-spec.ts";
export {
  type MeasuredPodVolume,
  type MountedVolume,
  MountTimeoutError,
  type NodeVolumes,
  type NodeVolumesEnv,
  type NodeVolumesOptions,
  type NodeVolumesStatus,
  type PodVolumeStats,
  PodVolumesError,
  SubPathError,
  type SubPathUse,
  startNodeVolumes,
} from "./node/index.ts";
export { type CsiPluginOptions, csiPlugin } from "./plugins/csi/csi-plugin.ts";
export {
  isLimitOfNode,
  type ResourceField,
  resourceText,
} from "./plugins/downward-api/downward-api-payload.ts";
export {
  checkFlexVolumeDriver,
  type FlexVolumeCheck,
  type FlexVolumeCheckOptions,
  type FlexVolumeExpansion,
} from "./plugins/flexvolume/check-driver.ts";
export { type InstalledDriver, lookAtDriverDirectory } from "./plugins/flexvolume/driver-directory.ts";
export {
  defaultDriverDirectory,
  namesOfDirectory,
  problemOfName,
} from "./plugins/flexvolume/flexvolume-names.ts";
export { type FlexVolumeProberOptions, flexVolumeProber } from "./plugins/flexvolume/flexvolume-prober.ts";
export { type ListedFlexVolumeDriver, listFlexVolumeDrivers } from "./plugins/flexvolume/list-drivers.ts";
export { podVolumePlugins } from "./plugins/pod-volume-plugins.ts";
