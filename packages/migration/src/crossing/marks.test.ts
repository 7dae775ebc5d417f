/** What a roll-back waits for: the marks of the driver's sidecars on objects of the plugin. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { expect, it } from "vitest";
import { crossingSubject } from "./crossing-subject.ts";
import { objectsCarryingMarks } from "./marks.ts";

const finalizer = "external-provisioner.volume.kubernetes.io/finalizer";
const inTree = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };

const volume = (metadata: object, policy = "Delete") =>
  ({
    metadata: { name: "v", uid: "u", resourceVersion: "1", annotations: inTree, ...metadata },
    spec: {
      awsElasticBlockStore: { volumeID: "vol-1" },
      persistentVolumeReclaimPolicy: policy,
      claimRef: { namespace: "default", name: "c", uid: "claim" },
    },
  }) as Stored<PersistentVolume>;

const deletionTimestamp = "2026-01-01T00:00:00Z";
const migrated = { ...inTree, "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" };

it.each<[string, Stored<PersistentVolume>, boolean]>([
  ["the provisioner's finalizer", volume({ finalizers: [finalizer] }), true],
  ["migrated-to", volume({ annotations: migrated }), true],
  ["nothing", volume({}), false],
  // Its disk is deleted in-tree once the claim is gone, which may take as long as a pod uses it.
  [
    "the finalizer, on one that is being deleted",
    volume({ finalizers: [finalizer], deletionTimestamp }),
    false,
  ],
  [
    "both, on one that is being deleted",
    volume({ finalizers: [finalizer], deletionTimestamp, annotations: migrated }),
    true,
  ],
  [
    "the finalizer, on one that is being deleted and retained",
    volume({ finalizers: [finalizer], deletionTimestamp }, "Retain"),
    true,
  ],
])("a volume with %s", (_name, pv, isWaitedFor) => {
  const found = objectsCarryingMarks(crossingSubject("aws-ebs"), [pv], []);
  expect(found.length > 0).toBe(isWaitedFor);
});
