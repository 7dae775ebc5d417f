export {
  type MountedVolume,
  type NodeVolumes,
  type NodeVolumesEnv,
  type NodeVolumesOptions,
  type NodeVolumesStatus,
  startNodeVolumes,
} from "./node-volumes.ts";
export type { MeasuredPodVolume } from "./stats/volume-stats.ts";
export type { PodVolumeStats } from "./stats/volume-stats-summary.ts";
export { SubPathError, type SubPathUse } from "./volume-manager/sub-paths.ts";
export { MountTimeoutError, PodVolumesError } from "./volume-manager/wait-for-volumes.ts";
