/** PersistentVolumes as a provisioner makes them: about 1.4 KB of JSON each once the server has them. */

const manager = "csi-provisioner";

/** What is sent to create volume `index`; its name is {@link volumeName}. */
export function volumeBody(index: number): Buffer {
  const id = index.toString(16).padStart(12, "0");
  const zone = `us-east-1${"abc"[index % 3]}`;
  return Buffer.from(
    JSON.stringify({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: {
        name: volumeName(index),
        annotations: { "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" },
        finalizers: ["kubernetes.io/pv-protection"],
      },
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "100Gi" },
        csi: {
          driver: "ebs.csi.aws.com",
          fsType: "ext4",
          volumeHandle: `vol-${id}`,
        },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [{ key: "topology.ebs.csi.aws.com/zone", operator: "In", values: [zone] }],
              },
            ],
          },
        },
        persistentVolumeReclaimPolicy: "Delete",
        storageClassName: "gp3",
        volumeMode: "Filesystem",
      },
    }),
  );
}

/** The name of volume `index`. */
export function volumeName(index: number): string {
  return `pvc-8e1f5c1a-77b2-4c3d-9f00-${index.toString(16).padStart(12, "0")}`;
}

/** User agent of the client that makes the volumes; its first part becomes the manager of their fields. */
export const agent = `${manager}/v3.1.0`;
