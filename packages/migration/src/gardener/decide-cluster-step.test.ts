import type { Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import {
  annotationKeyKubernetesVersion,
  type Cluster,
  annotationKeyControllerFinished as finished,
  annotationKeyNeedsComplete as needsComplete,
} from "./cluster.ts";
import { type ClusterObservation, type ClusterStep, decideClusterStep } from "./decide-cluster-step.ts";

const decide = pureDecision(decideClusterStep);
const options = {
  csiMigrationKubernetesVersion: "1.18",
  storageClassNameToLegacyProvisioner: { default: "kubernetes.io/aws-ebs", fast: "kubernetes.io/aws-ebs" },
};

interface Given {
  readonly version?: string;
  /** Annotations of the Cluster. */
  readonly annotations?: readonly string[];
  /** The Shoot's own version with which its migration begins. */
  readonly override?: string;
  readonly isHibernated?: boolean;
  readonly state?: string;
  readonly isDeleting?: boolean;
}

function aCluster(given: Given = {}): Stored<Cluster> {
  const { version = "1.18.3", annotations = [], override, isHibernated = false, state = "Succeeded" } = given;
  return {
    apiVersion: "extensions.gardener.cloud/v1alpha1",
    kind: "Cluster",
    metadata: {
      name: "shoot--p--a",
      uid: "u",
      resourceVersion: "1",
      creationTimestamp: "2022-01-01T00:00:00Z",
      annotations: Object.fromEntries(annotations.map((key) => [key, "any"])),
      ...(given.isDeleting === true && { deletionTimestamp: "2022-01-02T00:00:00Z" }),
    },
    spec: {
      shoot: {
        metadata: {
          name: "a",
          annotations: override === undefined ? {} : { [annotationKeyKubernetesVersion]: override },
        },
        spec: {
          provider: { type: "aws" },
          kubernetes: { version },
          hibernation: { enabled: isHibernated },
        },
        status: { lastOperation: { state } },
      },
    },
  } as Stored<Cluster>;
}

const aNode = (name: string, kubeletVersion: string) => ({ name, kubeletVersion });
const aClass = (name: string, provisioner: string) => ({ name, uid: `uid-${name}`, provisioner });
const legacy = "kubernetes.io/aws-ebs";

/** The step, with what it names. */
function named(step: ClusterStep): string {
  switch (step.step) {
    case "settle":
      return `settle: ${step.because}`;
    case "readControlPlane":
      return `readControlPlane ${step.namespace}/${step.name}`;
    case "waitForNodes":
      return `waitForNodes ${step.old.join()}`;
    case "deleteClass":
      return `deleteClass ${step.storageClass.name} ${step.storageClass.uid}`;
    case "wakeDeployment":
      return `wakeDeployment ${step.name}`;
    case "refuse":
    case "refuseNode":
      return `${step.step}: ${step.message}`;
    default:
      return step.step;
  }
}

const migrating: Partial<ClusterObservation> = { hasControlPlane: true };
const onlyNew = { ...migrating, nodes: [aNode("n", "v1.18.3")] };
const done = [needsComplete];

describe("the steps of a Cluster (migration-controllers.md A4)", () => {
  it.each<[step: string, what: string, given: Given, seen: Partial<ClusterObservation>, expected: string]>([
    ["A3", "finished", { annotations: [finished] }, {}, "settle: finished"],
    [
      "A4 3",
      "a version that is none",
      { version: "newest" },
      {},
      `refuse: Cluster shoot--p--a: spec.shoot.spec.kubernetes.version: "newest" is not a version: give one like 1.18.5`,
    ],
    ["A4 4", "its last operation failed", { state: "Failed" }, {}, "settle: shoot failed"],
    [
      "A4 4",
      "failed, though the gates are asked for",
      { state: "Failed", annotations: done },
      {},
      "settle: shoot failed",
    ],
    ["A4 4", "an operation goes on", { state: "Processing" }, {}, "readControlPlane shoot--p--a/a"],
    ["A4 5", "being deleted", { isDeleting: true }, {}, "settle: being deleted"],
    [
      "A4 6",
      "the gates are asked for: neither nodes nor control plane are read",
      { annotations: done },
      {},
      "wakeDeployment kube-apiserver",
    ],
    [
      "A4 6",
      "so it is with a later version",
      { annotations: done, version: "1.19.0" },
      {},
      "wakeDeployment kube-apiserver",
    ],
    ["A4 7", "nothing is known yet", {}, {}, "readControlPlane shoot--p--a/a"],
    ["A4 7", "a new shoot", {}, { hasControlPlane: false }, "markNew"],
    ["A4 7", "a new shoot that is hibernated", { isHibernated: true }, { hasControlPlane: false }, "markNew"],
    ["A4 7", "a new shoot of a later version", { version: "1.19.0" }, { hasControlPlane: false }, "markNew"],
    ["A4 9", "another minor version", { version: "1.19.0" }, migrating, "settle: other minor version"],
    [
      "A4 9",
      "the Shoot's own version is later",
      { override: "1.18.4" },
      migrating,
      "settle: other minor version",
    ],
    [
      "A4 9",
      "the Shoot's own version is its own minor",
      { override: "1.19", version: "1.19.0" },
      migrating,
      "listNodes",
    ],
    [
      "A4 9",
      "the Shoot's own version is none",
      { override: "soon" },
      migrating,
      `refuse: Cluster shoot--p--a: spec.shoot.spec.kubernetes.version: "soon" is not a version: give one like 1.18.5`,
    ],
    ["A4 10", "hibernated", { isHibernated: true }, migrating, "settle: hibernated"],
    ["A4 12", "nodes are not read yet", {}, migrating, "listNodes"],
    [
      "A4 12",
      "an old node",
      {},
      { ...migrating, nodes: [aNode("n", "v1.18.0"), aNode("o", "v1.17.9")] },
      "waitForNodes o",
    ],
    [
      "A4 12",
      "an old node, by the Shoot's own version",
      { override: "1.18.2" },
      { ...migrating, nodes: [aNode("o", "v1.18.1")] },
      "waitForNodes o",
    ],
    [
      "A4 12",
      "a build of the version",
      {},
      { ...migrating, nodes: [aNode("n", "v1.18.0-gke.1+abc")] },
      "listClasses",
    ],
    [
      "A4 12",
      "a node of no version",
      {},
      { ...migrating, nodes: [aNode("o", "v1.17.9"), aNode("x", "")] },
      `refuseNode: Cluster shoot--p--a: node x: status.nodeInfo.kubeletVersion: "" is not a version`,
    ],
    ["A4 12", "no node", {}, { ...migrating, nodes: [] }, "listClasses"],
    [
      "A4 13",
      "a legacy class",
      {},
      { ...onlyNew, classes: [aClass("mine", legacy), aClass("default", legacy)] },
      "deleteClass default uid-default",
    ],
    [
      "A4 13",
      "its name with another provisioner",
      {},
      { ...onlyNew, classes: [aClass("default", "ebs.csi.aws.com")] },
      "markNeedsComplete",
    ],
    [
      "A4 13",
      "its provisioner with another name",
      {},
      { ...onlyNew, classes: [aClass("mine", legacy)] },
      "markNeedsComplete",
    ],
    [
      "A4 13",
      "a name that every object has",
      {},
      { ...onlyNew, classes: [aClass("constructor", legacy)] },
      "markNeedsComplete",
    ],
    ["A4 14", "no class", {}, { ...onlyNew, classes: [] }, "markNeedsComplete"],
    [
      "A4 15",
      "the first is woken",
      { annotations: done },
      { woken: ["kube-apiserver"] },
      "wakeDeployment kube-controller-manager",
    ],
    [
      "A4 15",
      "two are woken",
      { annotations: done },
      { woken: ["kube-apiserver", "kube-controller-manager"] },
      "wakeDeployment kube-scheduler",
    ],
    [
      "A4 16",
      "all are woken",
      { annotations: done },
      { woken: ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] },
      "markFinished",
    ],
  ])("%s: %s", (_, __, given, seen, expected) => {
    expect(named(decide({ cluster: aCluster(given), options, ...seen }))).toBe(expected);
  });
});
