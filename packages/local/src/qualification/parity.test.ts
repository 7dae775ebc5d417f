import type { PersistentVolume } from "@longshore/kube";
import { expect, test } from "vitest";
import { clusterPlugin } from "../layout/plugins.ts";
import { differencesOfVolumes } from "./parity.ts";

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
  expect(differencesOfVolumes(clusterPlugin("aws-ebs"), inTree, migrated)).toEqual([]);
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
  expect(differencesOfVolumes(clusterPlugin("aws-ebs"), inTree, other)).toContainEqual(
    expect.stringContaining(expected),
  );
});
