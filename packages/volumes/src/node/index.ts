export {
  type MountedVolume,
  type NodeVolumes,
  type NodeVolumesEnv,
  type NodeVolumesOptions,
  type NodeVolumesStatus,
  startNodeVolumes,
} from "./node-volumes.ts";
