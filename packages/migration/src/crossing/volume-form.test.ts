import type { PersistentVolume } from "@longshore/kube";
import { expect, test } from "vitest";
import { volumeFormOf } from "./volume-form.ts";

const volume = (spec: NonNullable<PersistentVolume["spec"]>): PersistentVolume => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv-1", labels: { "topology.kubernetes.io/zone": "us-east-1a" } },
  spec,
});

test.each([
  [
    "an EBS volume has its id in both forms",
    { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-0123" } },
    {
      kind: "in-tree",
      plugin: "kubernetes.io/aws-ebs",
      driver: "ebs.csi.aws.com",
      handle: "aws://us-east-1a/vol-0123",
      csiHandle: "vol-0123",
    },
  ],
  [
    "a disk of GCE is named by pdName",
    { gcePersistentDisk: { pdName: "disk-1" } },
    { kind: "in-tree", plugin: "kubernetes.io/gce-pd", driver: "pd.csi.storage.gke.io", handle: "disk-1" },
  ],
  [
    "a volume that cannot be translated has no CSI handle",
    { awsElasticBlockStore: { volumeID: "aws://" } },
    { kind: "in-tree", handle: "aws://", csiHandle: undefined },
  ],
  [
    "a CSI volume says itself",
    { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } },
    { kind: "csi", driver: "ebs.csi.aws.com", handle: "vol-1" },
  ],
  ["a directory of the host moves nowhere", { hostPath: { path: "/srv" } }, { kind: "other" }],
] as const)("%s", (_name, spec, expected) => {
  expect(volumeFormOf(volume(spec))).toMatchObject(expected);
});
