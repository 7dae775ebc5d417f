/** PersistentVolumes as a cluster holds them, about 1.1 KB of JSON each, over all plugins. */

import type { PersistentVolume } from "@longshore/translation";

/** In-tree volumes; `index` picks the plugin and makes the names differ. */
export function inTreeVolume(index: number): PersistentVolume {
  const id = index.toString(16).padStart(12, "0");
  const zone = `us-east-1${"abc"[index % 3]}`;
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      annotations: {
        "pv.kubernetes.io/bound-by-controller": "yes",
        "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
      },
      creationTimestamp: "2021-03-04T05:06:07Z",
      finalizers: ["kubernetes.io/pv-protection"],
      labels: { "topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": zone },
      name: `pvc-8e1f5c1a-77b2-4c3d-9f00-${id}`,
      resourceVersion: String(1_000_000 + index),
      uid: `0b9ad1c4-1f53-4a6e-8d7e-${id}`,
    } as PersistentVolume["metadata"],
    spec: {
      accessModes: ["ReadWriteOnce"],
      ...sourceOf(index, id, zone),
      capacity: { storage: "100Gi" },
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        name: `data-postgres-${index % 50}`,
        namespace: `team-${index % 200}`,
        resourceVersion: String(900_000 + index),
        uid: `8e1f5c1a-77b2-4c3d-9f00-${id}`,
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: "topology.kubernetes.io/zone", operator: "In", values: [zone] },
                { key: "topology.kubernetes.io/region", operator: "In", values: ["us-east-1"] },
              ],
            },
          ],
        },
      },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "gp2",
      volumeMode: "Filesystem",
    } as PersistentVolume["spec"],
    status: { phase: "Bound" },
  } as PersistentVolume;
}

/** Mostly EBS, as most such clusters are; one in four of another plugin. */
function sourceOf(index: number, id: string, zone: string): Partial<NonNullable<PersistentVolume["spec"]>> {
  const fsType = "ext4";
  switch (index % 16) {
    case 3:
      return { gcePersistentDisk: { pdName: `gke-disk-${id}`, fsType } };
    case 7:
      return { cinder: { volumeID: `f1e2d3c4-0000-4000-8000-${id}`, fsType } };
    case 11: {
      const diskURI = `/subscriptions/0/resourceGroups/rg/providers/Microsoft.Compute/disks/${id}`;
      return {
        azureDisk: {
          diskName: id,
          diskURI,
          cachingMode: "ReadOnly",
          fsType,
          kind: "Managed",
          readOnly: false,
        },
      };
    }
    case 15:
      return { vsphereVolume: { volumePath: `[vsanDatastore] kubevols/${id}.vmdk`, fsType } };
    default:
      return { awsElasticBlockStore: { volumeID: `aws://${zone}/vol-${id}`, fsType } };
  }
}
