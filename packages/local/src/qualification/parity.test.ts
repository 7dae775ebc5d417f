import type { PersistentVolume } from "@longshore/kube";
import { expect, test } from "vitest";
import { clusterPlugin } from "../layout/plugins.ts";
import { parityOfVolumes } from "./parity.ts";

const inTree: PersistentVolume = {
  metadata: {
    name: "pvc-1",
    annotations: {
      "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
      "kubernetes.io/createdby": "aws-ebs-dynamic-provisioner",
    },
    finalizers: ["kubernetes.io/pv-controller", "kubernetes.io/pv-protection"],
  },
  spec: {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" },
    claimRef: { kind: "PersistentVolumeClaim", apiVersion: "v1", namespace: "default", name: "a", uid: "1" },
  },
};

const migrated: PersistentVolume = {
  metadata: {
    name: "pvc-2",
    annotations: {
      "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com",
      "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
    },
    finalizers: [
      "external-attacher/ebs-csi-aws-com",
      "kubernetes.io/pv-protection",
      "external-provisioner.volume.kubernetes.io/finalizer",
    ],
  },
  spec: {
    ...inTree.spec,
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-2", fsType: "ext4" },
    claimRef: { kind: "PersistentVolumeClaim", apiVersion: "v1", namespace: "default", name: "b", uid: "2" },
  },
};

test("which disk, which claim and who serves it are no difference", () => {
  expect(parityOfVolumes(clusterPlugin("aws-ebs"), inTree, migrated)).toEqual({
    differences: [],
    losses: [],
  });
});

test.each<[string, PersistentVolume, string]>([
  [
    "a CSI source",
    { ...migrated, spec: { capacity: { storage: "1Gi" }, csi: { driver: "d", volumeHandle: "v" } } },
    "spec.csi: ",
  ],
  [
    "another file system",
    {
      ...migrated,
      spec: { ...migrated.spec, awsElasticBlockStore: { volumeID: "vol-2", fsType: "xfs" } },
    },
    'spec.awsElasticBlockStore.fsType: "ext4" in-tree, "xfs" migrated',
  ],
  [
    "another provisioner",
    {
      ...migrated,
      metadata: { annotations: { "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" } },
    },
    'annotations.pv.kubernetes.io/provisioned-by: "kubernetes.io/aws-ebs" in-tree, "ebs.csi.aws.com" migrated',
  ],
  [
    "another capacity",
    { ...migrated, spec: { ...migrated.spec, capacity: { storage: "2Gi" } } },
    'spec.capacity.storage: "1Gi" in-tree, "2Gi" migrated',
  ],
])("%s is one", (_, other, expected) => {
  expect(parityOfVolumes(clusterPlugin("aws-ebs"), inTree, other).differences).toContainEqual(
    expect.stringContaining(expected),
  );
});

const azure: PersistentVolume = {
  metadata: {
    name: "pvc-1",
    labels: { "topology.kubernetes.io/zone": "z-1", "topology.kubernetes.io/region": "z" },
  },
  spec: {
    azureDisk: {
      diskName: "d",
      diskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
      kind: "Managed",
      cachingMode: "ReadOnly",
      fsType: "ext4",
      readOnly: false,
    },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: "topology.kubernetes.io/zone", operator: "In", values: ["z-1"] },
              { key: "topology.kubernetes.io/region", operator: "In", values: ["z"] },
            ],
          },
        ],
      },
    },
  },
};

/** The same disk as the driver's provisioner makes it, in this zone and with this caching mode. */
function azureMigrated(zone: string, cachingMode: string): PersistentVolume {
  const matchExpressions = [
    { key: "topology.disk.csi.azure.com/zone", operator: "In" as const, values: [zone] },
  ];
  return {
    metadata: { name: "pvc-2" },
    spec: {
      ...azure.spec,
      azureDisk: { ...azure.spec?.azureDisk, cachingMode } as never,
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  };
}

test("what the translation does not carry back is a loss, and no difference", () => {
  const { differences, losses } = parityOfVolumes(
    clusterPlugin("azure-disk"),
    azure,
    azureMigrated("z-1", "ReadOnly"),
  );
  expect(differences).toEqual([]);
  expect(losses.map((text) => text.split(": ")[0])).toEqual([
    "labels.topology.kubernetes.io/region",
    "labels.topology.kubernetes.io/zone",
    "spec.nodeAffinity.required.nodeSelectorTerms",
  ]);
});

test("where a loss is expected, anything else than this loss is a difference", () => {
  const { differences } = parityOfVolumes(
    clusterPlugin("azure-disk"),
    azure,
    azureMigrated("z-2", "ReadWrite"),
  );
  expect(differences.map((text) => text.split(": ")[0])).toEqual([
    "spec.azureDisk.cachingMode",
    "spec.nodeAffinity.required.nodeSelectorTerms",
  ]);
});
