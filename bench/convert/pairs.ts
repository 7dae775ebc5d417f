/** The PersistentVolumes and claims of the benchmark, and what they become, as a client without Longshore would write them. */
import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";

export const namespace = "default";
export const driver = "ebs.csi.aws.com";
const size = { storage: "1Gi" };

/** An in-tree volume with policy Delete, bound by name. */
export function volumeOf(name: string): PersistentVolume {
  return {
    metadata: { name: `pv-${name}` },
    spec: {
      capacity: size,
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "gp2",
      claimRef: { namespace, name },
      awsElasticBlockStore: { volumeID: `vol-${name}`, fsType: "ext4" },
    },
  };
}

/** The same disk as its driver calls it. */
export function csiVolumeOf(name: string): PersistentVolume {
  const { awsElasticBlockStore: _, ...spec } = volumeOf(name).spec ?? {};
  const csi = { driver, volumeHandle: `vol-${name}`, fsType: "ext4" };
  return {
    metadata: { name: `pv-${name}-csi` },
    spec: { ...spec, persistentVolumeReclaimPolicy: "Retain", csi },
  };
}

/** The claim, bound to the volume of this name. */
export function claimOf(name: string, volumeName = `pv-${name}`): PersistentVolumeClaim {
  return {
    metadata: { namespace, name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: size },
      storageClassName: "gp2",
      volumeName,
    },
  };
}
