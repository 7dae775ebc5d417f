/** The bytes that the server sends: PersistentVolumes as a provisioner makes them, about 1.6 KB each, with managed fields. */

/** Items of one page. */
export const pageItems = 500;
/** Version at which the list is taken. */
export const listVersion = 1_000_000;

/** Volume `index` as stored at `version`. */
export function volumeJson(index: number, version: number): string {
  const id = index.toString(16).padStart(12, "0");
  const time = "2026-01-01T00:00:00Z";
  return JSON.stringify({
    metadata: {
      name: `pvc-8e1f5c1a-77b2-4c3d-9f00-${id}`,
      uid: `0b9d8c2e-5a41-4a6e-8f00-${id}`,
      resourceVersion: String(version),
      creationTimestamp: time,
      annotations: { "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" },
      finalizers: ["kubernetes.io/pv-protection", "external-attacher/ebs-csi-aws-com"],
      managedFields: [
        {
          manager: "csi-provisioner",
          operation: "Update",
          apiVersion: "v1",
          time,
          fieldsType: "FieldsV1",
          fieldsV1: {
            "f:metadata": { "f:annotations": { ".": {}, "f:pv.kubernetes.io/provisioned-by": {} } },
            "f:spec": {
              "f:accessModes": {},
              "f:capacity": { ".": {}, "f:storage": {} },
              "f:csi": { ".": {}, "f:driver": {}, "f:fsType": {}, "f:volumeHandle": {} },
              "f:nodeAffinity": { ".": {}, "f:required": {} },
              "f:persistentVolumeReclaimPolicy": {},
              "f:storageClassName": {},
              "f:volumeMode": {},
            },
          },
        },
      ],
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "100Gi" },
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        name: `data-db-${index}`,
        namespace: "default",
        uid: `8e1f5c1a-77b2-4c3d-9f00-${id}`,
      },
      csi: { driver: "ebs.csi.aws.com", fsType: "ext4", volumeHandle: `vol-${id}` },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                {
                  key: "topology.ebs.csi.aws.com/zone",
                  operator: "In",
                  values: [`us-east-1${"abc"[index % 3]}`],
                },
              ],
            },
          ],
        },
      },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "gp3",
      volumeMode: "Filesystem",
    },
    status: { phase: "Bound" },
  });
}

/** One page of the list, and where the next begins. */
export function pageJson(from: number, size: number): string {
  const to = Math.min(from + pageItems, size);
  const items = Array.from({ length: to - from }, (_, i) =>
    volumeJson(from + i, listVersion - size + from + i),
  );
  const next = to < size ? `,"continue":"${to}"` : "";
  return `{"kind":"PersistentVolumeList","apiVersion":"v1","metadata":{"resourceVersion":"${listVersion}"${next}},"items":[${items.join(",")}]}`;
}

/** One line of a watch. */
export function eventLine(type: string, index: number, version: number): string {
  const object = volumeJson(index, version);
  return `{"type":"${type}","object":{"kind":"PersistentVolume","apiVersion":"v1",${object.slice(1)}}\n`;
}
