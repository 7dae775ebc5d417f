import type { PersistentVolume } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { decideVolumeGoal } from "./volume-goal.ts";

const driver = { name: "ebs.csi.aws.com", inTreeName: "kubernetes.io/aws-ebs" };
const finalizer = "external-provisioner.volume.kubernetes.io/finalizer";
const csi = { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } };
const inTree = { awsElasticBlockStore: { volumeID: "vol-1" } };
const migrated = { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" };
const byInTree = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };

interface Given {
  readonly source: object;
  readonly annotations?: Record<string, string>;
  readonly phase?: string;
  readonly policy?: string;
  readonly protectedByUs?: boolean;
  readonly protectedInTree?: boolean;
  readonly deleting?: boolean;
}

function pv({
  source,
  annotations = {},
  phase = "Bound",
  policy = "Delete",
  protectedByUs,
  protectedInTree,
  deleting,
}: Given) {
  const claimRef = { name: "c", namespace: "default", uid: "claim" };
  return {
    metadata: {
      name: "pv",
      annotations,
      finalizers: [
        ...(protectedByUs ? [finalizer] : []),
        ...(protectedInTree ? ["kubernetes.io/pv-controller"] : []),
      ],
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: { ...source, claimRef, persistentVolumeReclaimPolicy: policy },
    status: { phase },
  } as PersistentVolume;
}

const cases: readonly [name: string, given: Given, step: string][] = [
  ["a bound volume of the driver is protected", { source: csi }, "protect"],
  ["once", { source: csi, protectedByUs: true }, "none"],
  ["not one to be retained", { source: csi, policy: "Retain" }, "none"],
  ["which loses the protection", { source: csi, policy: "Retain", protectedByUs: true }, "unprotect"],
  ["a released volume is deleted", { source: csi, phase: "Released" }, "delete"],
  [
    "so is one that in-tree code failed to delete before the migration",
    { source: inTree, annotations: { ...byInTree, ...migrated }, phase: "Failed" },
    "delete",
  ],
  [
    "but not one that in-tree code still answers for",
    { source: inTree, annotations: byInTree, phase: "Failed" },
    "none",
  ],
  ["nor one of which nothing is known yet", { source: csi, phase: "Pending" }, "none"],
  [
    "an in-tree volume that the driver provisioned is ours",
    {
      source: inTree,
      annotations: { "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" },
      phase: "Released",
    },
    "delete",
  ],
  [
    "also while the user deletes it, as long as we hold it",
    { source: csi, phase: "Released", protectedByUs: true, deleting: true },
    "delete",
  ],
  ["not when nothing of ours holds it", { source: csi, phase: "Released", deleting: true }, "none"],
  ["nor while it is bound", { source: csi, protectedByUs: true, deleting: true }, "none"],
  ["nor when it is to be retained", { source: csi, phase: "Released", policy: "Retain" }, "none"],
  [
    "another driver's is left alone",
    { source: { csi: { driver: "other", volumeHandle: "v" } }, phase: "Released" },
    "none",
  ],
  [
    "so is one that another provisioner made",
    { source: csi, annotations: byInTree, phase: "Released" },
    "none",
  ],
  [
    "a migrated in-tree volume is ours",
    { source: inTree, annotations: { ...byInTree, ...migrated }, phase: "Released" },
    "delete",
  ],
  ["an in-tree one is not", { source: inTree, annotations: byInTree, phase: "Released" }, "none"],
  [
    "and gives up our protection",
    { source: inTree, annotations: byInTree, protectedByUs: true },
    "unprotect",
  ],
  [
    "but not while it is being deleted: its disk is deleted in-tree first",
    { source: inTree, annotations: byInTree, protectedByUs: true, deleting: true },
    "none",
  ],
  [
    "unless the finalizer of the in-tree code keeps it as well",
    { source: inTree, annotations: byInTree, protectedByUs: true, protectedInTree: true, deleting: true },
    "unprotect",
  ],
  [
    "or it is to be retained",
    { source: inTree, annotations: byInTree, policy: "Retain", protectedByUs: true, deleting: true },
    "unprotect",
  ],
  [
    "one whose deletion was requested in-tree is ours to delete once its plugin has migrated",
    {
      source: inTree,
      annotations: { ...byInTree, ...migrated },
      phase: "Released",
      protectedInTree: true,
      deleting: true,
    },
    "delete",
  ],
  [
    "also one that our finalizer keeps too",
    {
      source: inTree,
      annotations: { ...byInTree, ...migrated },
      phase: "Failed",
      ...{ protectedByUs: true, protectedInTree: true, deleting: true },
    },
    "delete",
  ],
];

describe("the decision for a volume", () => {
  it.each(cases)("%s", (_, given, step) => {
    expect(decideVolumeGoal(driver, pv(given), true)).toBe(step);
  });

  it("takes the protection off where it is switched off", () => {
    expect(decideVolumeGoal(driver, pv({ source: csi, protectedByUs: true }), false)).toBe("unprotect");
    expect(decideVolumeGoal(driver, pv({ source: csi }), false)).toBe("none");
  });
});
