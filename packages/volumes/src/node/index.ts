export { nodeIDAnnotation } from "./csi-node/node-info.ts";
export { migrationPendingCondition } from "./migration/node-migration.ts";
export {
  type MountedVolume,
  type NodeVolumes,
  type NodeVolumesEnv,
  type NodeVolumesOptions,
  type NodeVolumesStatus,
  startNodeVolumes,
} from "./node-volumes.ts";
export { PodVolumeError } from "./volume-manager/pod-volumes.ts";
export { MountTimeoutError, mountTimeoutMs, PodVolumesError } from "./volume-manager/volume-manager.ts";
