/** The disk cloud: the stand-in for a provider's disk API. */
export { createDiskCloud, type DiskCloudService } from "./disk-cloud.ts";
export { connectDiskCloud, type DiskCloudClient } from "./http-client.ts";
export { serveDiskCloud } from "./http-server.ts";
export type {
  DiskSnapshot,
  DiskSource,
  ProviderCloud,
  ProviderDisk,
  SnapshotGroup,
} from "./provider-cloud.ts";
