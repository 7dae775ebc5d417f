/** The disk cloud: the stand-in for a provider's disk API. */
export type { CloudInstance } from "./cloud-state.ts";
export { defaultCephUsers } from "./credentials.ts";
export { createDiskCloud, type DiskCloudService } from "./disk-cloud.ts";
export { connectDiskCloud, type DiskCloudClient } from "./http-client.ts";
export {
  type DiskSnapshot,
  type DiskSource,
  type ProviderCloud,
  type ProviderDisk,
  type SnapshotGroup,
  snapshotBlockBytes,
} from "./provider-cloud.ts";
export { startDiskCloud } from "./start-disk-cloud.ts";
