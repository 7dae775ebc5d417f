/** The disk cloud: the stand-in for a provider's disk API. */
export {
  type CallCount,
  type CallCounters,
  type CloudCall,
  type CloudOp,
  cloudOps,
} from "./call-log.ts";
export {
  createDiskCloud,
  type DiskCloudAdmin,
  type DiskCloudEnv,
  type DiskCloudOptions,
  type DiskCloudService,
  defaultAttachLimit,
} from "./disk-cloud.ts";
export type { CloudKnobs } from "./faults.ts";
export { connectDiskCloud, type DiskCloudClient, type DiskCloudClientOptions } from "./http-client.ts";
export { CloudSocketError, serveDiskCloud } from "./http-server.ts";
export { CloudStateError } from "./state-file.ts";
