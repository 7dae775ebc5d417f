/** The in-tree volume plugin `kubernetes.io/azure-disk`: managed disks. Disks in blobs of a storage account are refused. */
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { azureDiskLimit } from "./azure-disk-limits.ts";
import { azureDiskProvisioning } from "./azure-disk-provisioning.ts";
import { crc32Koopman } from "./crc32-koopman.ts";

const pluginName = "kubernetes.io/azure-disk";
const label = "Azure Disk";

const form = {
  field: "diskURI",
  expected: "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Compute/disks/<name>",
};
const managedDisk =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Compute\/disks\/[^/]+$/i;

const names: DiskNames = {
  ...form,
  diskIdOf(diskURI) {
    if (!managedDisk.test(diskURI)) throw unreadableName(form, diskURI);
    return diskURI;
  },
  volumeNameOf: ({ id }) => id,
  // Source: upstream volume/azure_dd makeGlobalPDPath. The hash cannot be reversed: a file records the URI.
  directoryOf: (diskURI) => `m${crc32Koopman(diskURI.toLowerCase())}`,
  mapped: {
    directoryOf: (diskURI) => diskURI.slice(1),
    volumeNameIn: (directory) => (managedDisk.test(`/${directory}`) ? `/${directory}` : undefined),
  },
};

/** Azure managed disk. */
export const azureDisk: DiskDescription<"azureDisk"> = {
  pluginName,
  provider: "azure-disk",
  sourceField: "azureDisk",
  label,
  withoutCloud: "AzureDisk -  failed to get Azure Cloud Provider. GetCloudProvider returned <nil> instead",
  readSource({ diskURI, fsType, kind, cachingMode }) {
    if (kind != null && kind !== "Managed") {
      throw new InTreeVolumeError(
        `disk ${diskURI}: kind ${kind} is not supported: move the data to a managed disk and set kind to Managed`,
      );
    }
    return {
      volumeName: diskURI,
      fsType: fsType ?? "",
      ...(cachingMode == null ? {} : { caching: cachingMode }),
    };
  },
  sourceNamed: (diskURI) => ({
    azureDisk: { diskURI, diskName: diskURI.slice(diskURI.lastIndexOf("/") + 1), kind: "Managed" },
  }),
  names,
  attached: {
    by: "controller",
    reportedDevice: ({ lun, devicePath }) => (lun === undefined ? devicePath : `${lun}`),
    deviceOf: (reported, deviceDir) =>
      /^\d+$/.test(reported) ? `${deviceDir}/disk/azure/scsi1/lun${reported}` : reported,
  },
  provisioning: azureDiskProvisioning(pluginName, label),
  expansion: "offline",
  limits: { key: "attachable-volumes-azure-disk", ofInstanceType: azureDiskLimit },
};
