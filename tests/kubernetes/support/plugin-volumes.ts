/** Volumes of each in-tree plugin, as they stand in a PersistentVolume and in a pod. */
import type { PersistentVolume, Volume } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";

/** One in-tree plugin with the names around its migration. */
export interface PluginVolumes {
  readonly shortName: string;
  readonly driver: string;
  /** Undefined: Kubernetes 1.20 cannot migrate it. */
  readonly gate: string | undefined;
  /** The source in a PersistentVolume. @param id distinguishes volumes */
  readonly source: (id: string) => Partial<NonNullable<PersistentVolume["spec"]>>;
  /** The same in a pod, where pods can name it. */
  readonly inline: (id: string) => Omit<Volume, "name">;
  /** Patterns of what Kubernetes 1.20 says and makes, and what stands in their place in ours. */
  readonly meantDifferences?: readonly (readonly [kubernetes: RegExp, ours: string])[];
}

const azureDiskUri = (id: string) =>
  `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/${id}`;

const azureFileDriver = "file.csi.azure.com";

/** The handle of Kubernetes 1.20, and the attachment named after it, with what the newer translation appends. */
function azureFileHandle(handle: string, more: string): NonNullable<PluginVolumes["meantDifferences"]> {
  const nameOf = (text: string) => attachmentName(text, azureFileDriver, "azure-file-migrated");
  return [
    [new RegExp(`(?<=\\^|^)${handle}$`), `${handle}${more}`],
    [new RegExp(nameOf(handle)), nameOf(`${handle}${more}`)],
  ];
}

const noCephCluster = "no Ceph cluster is configured: name one, or take kubernetes.io/rbd out of the cluster";

/** A source that is the same in both places. */
const both = (of: (id: string) => object): Pick<PluginVolumes, "source" | "inline"> => ({
  source: of,
  inline: of,
});

/** All eight. */
export const pluginVolumes: readonly PluginVolumes[] = [
  {
    shortName: "aws-ebs",
    driver: "ebs.csi.aws.com",
    gate: "CSIMigrationAWS",
    ...both((id) => ({ awsElasticBlockStore: { volumeID: `vol-${id}`, fsType: "ext4" } })),
  },
  {
    shortName: "gce-pd",
    driver: "pd.csi.storage.gke.io",
    gate: "CSIMigrationGCE",
    ...both((id) => ({ gcePersistentDisk: { pdName: id, fsType: "ext4" } })),
  },
  {
    shortName: "azure-disk",
    driver: "disk.csi.azure.com",
    gate: "CSIMigrationAzureDisk",
    ...both((id) => ({
      azureDisk: {
        diskName: id,
        diskURI: azureDiskUri(id),
        kind: "Managed",
        cachingMode: "ReadOnly",
        fsType: "ext4",
        readOnly: false,
      },
    })),
    // The newer translation names an inline volume by its URI, and attributes in lower case (docs/behaviour/volume-plugins.md 8).
    meantDifferences: [
      [/(?<=")disk\.csi\.azure\.com-([^"]+)/, azureDiskUri("$1")],
      [/(?<=, volumeAttributes, )cachingMode$/, "cachingmode"],
      [/(?<=, volumeAttributes, )fsType$/, "fstype"],
    ],
  },
  {
    shortName: "azure-file",
    driver: azureFileDriver,
    gate: "CSIMigrationAzureFile",
    source: (id) => ({
      azureFile: { secretName: "azure-storage-account-a-secret", secretNamespace: "default", shareName: id },
    }),
    inline: (id) => ({ azureFile: { secretName: "azure-storage-account-a-secret", shareName: id } }),
    // The newer one writes volume and namespace into the handle, and attributes in lower case (docs/behaviour/volume-plugins.md 8).
    meantDifferences: [
      [/(?<=")file\.csi\.azure\.com-([^"]+)/, "#a#$1#v#default"],
      [/(?<=, volumeAttributes, )shareName$/, "sharename"],
      ...azureFileHandle("#a#azure-file-inline-migrated#", "v#default"),
      ...azureFileHandle("#a#azure-file-migrated#", "azure-file-migrated#default"),
    ],
  },
  {
    shortName: "cinder",
    driver: "cinder.csi.openstack.org",
    gate: "CSIMigrationOpenStack",
    ...both((id) => ({ cinder: { volumeID: id, fsType: "ext4" } })),
    // 1.20 looks for a configuration of its own (docs/decisions/0003, 24).
    meantDifferences: [[/(?<=was not initialized properly) : stat .*$/, ""]],
  },
  {
    shortName: "vsphere-volume",
    driver: "csi.vsphere.vmware.com",
    gate: "CSIMigrationvSphere",
    ...both((id) => ({ vsphereVolume: { volumePath: `[ds1] kubevols/${id}.vmdk`, fsType: "ext4" } })),
  },
  {
    shortName: "portworx-volume",
    driver: "pxd.portworx.com",
    gate: undefined,
    ...both((id) => ({ portworxVolume: { volumeID: id, fsType: "ext4" } })),
  },
  {
    shortName: "rbd",
    driver: "rbd.csi.ceph.com",
    gate: undefined,
    ...both((id) => ({
      rbd: {
        monitors: ["10.0.0.1:6789"],
        image: id,
        pool: "kube",
        user: "kube",
        secretRef: { name: "ceph" },
        fsType: "ext4",
      },
    })),
    // 1.20 reads the administrator's Secret first (docs/decisions/0003, 24).
    meantDifferences: [
      [/Failed to create deleter for volume "rbd-deleted": (?=failed to get admin secret)/, ""],
      [/(failed to get admin secret from .*|missing Ceph admin secret name)$/, noCephCluster],
    ],
  },
];
