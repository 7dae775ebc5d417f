/** The volume subsystem. */

export {
  type AttachDetachEnv,
  type AttachDetachOptions,
  startAttachDetachController,
} from "./controllers/attach-detach/attach-detach-controller.ts";
export { migratedPluginsAnnotation } from "./controllers/attach-detach/backend-decision.ts";
export {
  type ExpandEnv,
  type ExpandOptions,
  startExpandController,
  storageResizerAnnotation,
} from "./controllers/expand/expand-controller.ts";
export {
  type PersistentVolumeEnv,
  type PersistentVolumeOptions,
  startPersistentVolumeController,
} from "./controllers/persistent-volume/persistent-volume-controller.ts";
export {
  type ProtectionEnv,
  startProtectionControllers,
} from "./controllers/protection/protection-controllers.ts";
export * from "./csimigration/index.ts";
export * from "./framework/controller-errors.ts";
export * from "./framework/names.ts";
export * from "./framework/node-errors.ts";
export {
  createOperationExecutor,
  type OperationEnd,
  type OperationExecutor,
  type OperationExecutorOptions,
  type OperationKey,
  operationBackoff,
  type StartResult,
} from "./framework/operations.ts";
export * from "./framework/plugin.ts";
export * from "./framework/plugin-halves.ts";
export {
  createVolumePluginManager,
  PluginLookupError,
  type VolumePluginManager,
} from "./framework/plugin-manager.ts";
export * from "./framework/ports.ts";
export * from "./framework/spec.ts";
export * from "./framework/volume-host.ts";
export * from "./node/index.ts";
export {
  type AwsEbsNodeHalf,
  type AwsEbsNodeHalfOptions,
  createAwsEbsNodeHalf,
} from "./plugins/aws-ebs/aws-ebs-node-half.ts";
export {
  type AwsEbsPlugin,
  type AwsEbsPluginOptions,
  awsEbsPlugin,
} from "./plugins/aws-ebs/aws-ebs-plugin.ts";
export { AttachmentError, attachmentFor } from "./plugins/csi/csi-attacher.ts";
export {
  attachmentName,
  CsiVolumeError,
  csiPluginName,
  csiSourceOf,
  csiVolumeName,
  isAttachmentName,
  parseCsiVolumeName,
} from "./plugins/csi/csi-names.ts";
export { type CsiNodeHalf, type CsiNodeHalfOptions, createCsiNodeHalf } from "./plugins/csi/csi-node-half.ts";
export { type CsiPluginOptions, csiPlugin } from "./plugins/csi/csi-plugin.ts";
