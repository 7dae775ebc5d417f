/** The reference CSI driver, and the disk cloud that stands in for its provider. */
export {
  connectDiskCloud,
  createDiskCloud,
  type DiskCloudClient,
  type DiskCloudService,
  type DiskSnapshot,
  type DiskSource,
  defaultCephUsers,
  type ProviderCloud,
  type ProviderDisk,
  type SnapshotGroup,
  snapshotBlockBytes,
  startDiskCloud,
} from "./disk-cloud/index.ts";
export {
  createReferenceDriver,
  type FaultName,
  faultDescriptions,
  faultNames,
  isFaultName,
  providerOfDriver,
  type StandaloneDriverOptions,
  startStandaloneDriver,
} from "./driver/index.ts";
