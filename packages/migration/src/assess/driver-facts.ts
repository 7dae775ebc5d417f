/**
 * What the drivers that take in-tree plugins over accept, as far as it differs from what the plugins accept. Sources: the drivers'
 * documentation and the checks in their CreateVolume and ControllerPublishVolume; docs/behaviour/volume-plugins.md 8.3 and 10.
 */

/** Drivers of disks that mount a file system for writing on one node only. */
export const diskDrivers: ReadonlySet<string> = new Set([
  "ebs.csi.aws.com",
  "pd.csi.storage.gke.io",
  "disk.csi.azure.com",
  "cinder.csi.openstack.org",
  "csi.vsphere.vmware.com",
]);

/** Those of them that attach a disk to several nodes that only read it. */
export const readerDrivers: ReadonlySet<string> = new Set(["pd.csi.storage.gke.io"]);

/** Drivers of shares of files, which have no device. */
export const shareDrivers: ReadonlySet<string> = new Set(["file.csi.azure.com"]);

/** Parameters of classes that a driver knows, in lower case; others it refuses. A driver that is not here ignores them. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  "ebs.csi.aws.com": [
    ...["type", "iops", "iopspergb", "allowautoiopspergbincrease", "throughput", "encrypted", "kmskeyid"],
    ...["fstype", "blocksize", "inodesize", "bytesperinode", "numberofinodes", "blockexpress"],
    ...["ext4bigalloc", "ext4clustersize"],
  ],
  "pd.csi.storage.gke.io": [
    ...["type", "replication-type", "disk-encryption-kms-key", "labels", "fstype"],
    ...["provisioned-iops-on-create", "provisioned-throughput-on-create", "resource-tags"],
  ],
  "disk.csi.azure.com": [
    ...["skuname", "storageaccounttype", "kind", "cachingmode", "location", "resourcegroup", "fstype"],
    ...["diskiopsreadwrite", "diskmbpsreadwrite", "logicalsectorsize", "diskencryptionsetid", "maxshares"],
    ...["tags", "writeacceleratorenabled", "perfprofile", "subscriptionid", "networkaccesspolicy"],
    ...["publicnetworkaccess", "diskaccessid", "enablebursting", "zoned", "incremental"],
  ],
  "file.csi.azure.com": [
    ...["skuname", "storageaccounttype", "storageaccount", "location", "resourcegroup", "secretname"],
    ...["secretnamespace", "protocol", "tags", "storeaccountkey", "fstype", "sharename"],
  ],
  // The other parameters of the plugin are refused as those of an in-tree volume, and so is another disk format than thin.
  "csi.vsphere.vmware.com": [
    ...["storagepolicyname", "datastoreurl", "fstype", "csimigration", "datastore-migrationparam"],
    "diskformat-migrationparam",
  ],
};

/** Parameters that every provisioner takes for itself. */
const ofProvisioner = "csi.storage.k8s.io/";

/** Why the driver refuses the parameter; undefined when it takes or ignores it. */
export function parameterRefusal(driver: string, name: string, value: string): string | undefined {
  const lower = name.toLowerCase();
  const known = parameters[driver];
  if (known === undefined || lower.startsWith(ofProvisioner)) return undefined;
  if (!known.includes(lower)) return "the driver refuses a parameter of this name";
  if (lower === "diskformat-migrationparam" && value !== "thin") return "the driver makes thin disks only";
  return undefined;
}
