/** Volumes of each in-tree plugin, as they stand in a PersistentVolume and in a pod. */
import type { PersistentVolume, Volume } from "@longshore/kube";

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
}

const azureDiskUri = (id: string) =>
  `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/${id}`;

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
  },
  {
    shortName: "azure-file",
    driver: "file.csi.azure.com",
    gate: "CSIMigrationAzureFile",
    source: (id) => ({
      azureFile: { secretName: "azure-storage-account-a-secret", secretNamespace: "default", shareName: id },
    }),
    inline: (id) => ({ azureFile: { secretName: "azure-storage-account-a-secret", shareName: id } }),
  },
  {
    shortName: "cinder",
    driver: "cinder.csi.openstack.org",
    gate: "CSIMigrationOpenStack",
    ...both((id) => ({ cinder: { volumeID: id, fsType: "ext4" } })),
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
  },
];
