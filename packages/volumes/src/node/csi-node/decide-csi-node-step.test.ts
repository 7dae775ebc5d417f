/** What one change of the CSINode writes, as a table. Source: docs/behaviour/node-agent.md 2. */
import { type CSINode, KubeApiError, type Node, type Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import {
  type CsiNodeChange,
  decideCsiNodeStep,
  type ObservedCsiNode,
  withDriver,
} from "./decide-csi-node-step.ts";

const decide = pureDecision(decideCsiNodeStep);
const info = { nodeID: "i-1", maxVolumes: 0n, topology: {} };
const d = { name: "d", nodeID: "i-1" };
const other = { name: "other", nodeID: "o-1" };
const set: CsiNodeChange = { kind: "setDriver", name: "d", info };
const remove: CsiNodeChange = { kind: "removeDriver", name: "d" };
const publish: CsiNodeChange = { kind: "publish" };
const ebs = new Set(["kubernetes.io/aws-ebs"]);
const node = { metadata: { name: "n", uid: "u-1", resourceVersion: "7" } } as Stored<Node>;

/** A CSINode of these drivers, with what its annotation lists. */
function csiNode(drivers: CSINode["spec"]["drivers"], listed?: string): Stored<CSINode> {
  const annotations = listed === undefined ? {} : { [migratedPluginsAnnotation]: listed };
  return { metadata: { name: "n", resourceVersion: "3", annotations }, spec: { drivers } } as Stored<CSINode>;
}

const nothing = {
  stored: undefined,
  node: undefined,
  oldDrivers: [],
  drivers: new Map(),
  migrated: undefined,
  failure: undefined,
};
/** What is written: the step, names of the drivers, what the annotation lists. */
function written(observed: Omit<ObservedCsiNode, keyof typeof nothing> & Partial<ObservedCsiNode>) {
  const step = decide({ ...nothing, ...observed });
  if (!("csiNode" in step)) return step.step;
  const { metadata, spec } = step.csiNode;
  const drivers = spec.drivers.map(({ name }) => name).join(" ");
  return `${step.step}: ${drivers}; ${metadata?.annotations?.[migratedPluginsAnnotation] ?? "not annotated"}`;
}

describe("a change where there is no CSINode", () => {
  it.each<[string, CsiNodeChange, object, string]>([
    ["makes one with the driver", set, { node }, "create: d; not annotated"],
    [
      "makes one with driver and annotation",
      set,
      { node, migrated: ebs },
      "create: d; kubernetes.io/aws-ebs",
    ],
    ["makes one without drivers", publish, { node, migrated: ebs }, "create: ; kubernetes.io/aws-ebs"],
    [
      "makes one also when nothing is migrated",
      publish,
      { node, migrated: new Set() },
      "create: ; not annotated",
    ],
    [
      "takes over the drivers of a CSINodeInfo",
      publish,
      { node, oldDrivers: [d, other] },
      "create: d other; not annotated",
    ],
    [
      "sets its driver over what a CSINodeInfo says of it",
      set,
      { node, oldDrivers: [{ name: "d", nodeID: "old" }, other] },
      "create: other d; not annotated",
    ],
    ["waits for the Node", set, {}, "waitForNode"],
    ["waits for the Node before the annotation is published", publish, { migrated: ebs }, "waitForNode"],
    ["that removes a driver does nothing", remove, { node, migrated: ebs }, "settle"],
    ["that removes a driver waits for no Node", remove, {}, "settle"],
  ])("%s", (_name, change, observed, expected) => {
    expect(written({ change, ...observed })).toBe(expected);
  });

  it("makes one that belongs to the Node", () => {
    expect(decide({ ...nothing, change: publish, node })).toEqual({
      step: "create",
      csiNode: {
        apiVersion: "storage.k8s.io/v1",
        kind: "CSINode",
        metadata: { name: "n", ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u-1" }] },
        spec: { drivers: [] },
      },
    });
  });
});

describe("a change of the CSINode", () => {
  const annotated = csiNode([d], "kubernetes.io/aws-ebs");
  it.each<[string, CsiNodeChange, object, string]>([
    ["adds a driver beside the others", set, { stored: csiNode([other]) }, "update: other d; not annotated"],
    [
      "replaces the entry of a driver with another node ID",
      { ...set, info: { ...info, nodeID: "i-2" } },
      { stored: csiNode([d, other]) },
      "update: other d; not annotated",
    ],
    ["leaves an equal entry", set, { stored: csiNode([other, d]) }, "settle"],
    ["removes a driver alone", remove, { stored: csiNode([other, d]) }, "update: other; not annotated"],
    [
      "that removes the last driver leaves the object",
      remove,
      { stored: csiNode([d]) },
      "update: ; not annotated",
    ],
    ["leaves drivers without the one to remove", remove, { stored: csiNode([other]) }, "settle"],
    [
      "publishes what is migrated",
      publish,
      { stored: csiNode([d]), migrated: ebs },
      "update: d; kubernetes.io/aws-ebs",
    ],
    [
      "takes back what is not migrated any more",
      publish,
      { stored: annotated, migrated: new Set() },
      "update: d; not annotated",
    ],
    ["leaves an annotation that lists the same", publish, { stored: annotated, migrated: ebs }, "settle"],
    ["leaves the annotation before it is decided", set, { stored: annotated }, "settle"],
    [
      "keeps the annotation before it is decided",
      remove,
      { stored: annotated },
      "update: ; kubernetes.io/aws-ebs",
    ],
    [
      "puts the annotation right with a driver that stays",
      set,
      { stored: csiNode([d]), migrated: ebs },
      "update: d; kubernetes.io/aws-ebs",
    ],
    [
      "puts the annotation right with a driver that goes",
      remove,
      { stored: csiNode([d], "kubernetes.io/gce-pd"), migrated: ebs },
      "update: ; kubernetes.io/aws-ebs",
    ],
  ])("%s", (_name, change, observed, expected) => {
    expect(written({ change, ...observed })).toBe(expected);
  });

  it("writes over the version that it has read", () => {
    const step = decide({ ...nothing, change: set, stored: csiNode([]) });
    expect("csiNode" in step && step.csiNode.metadata?.resourceVersion).toBe("3");
  });
});

describe("a change where the CSINode is of a Node that was deleted", () => {
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u-0" }];
  const bare = csiNode([d], "kubernetes.io/aws-ebs");
  const stored = { ...bare, metadata: { ...bare.metadata, uid: "c-0", ownerReferences } };

  it.each<[string, CsiNodeChange, object, string]>([
    ["removes it", publish, { node, migrated: ebs }, "removeOld"],
    ["removes it before a driver is added", set, { node }, "removeOld"],
    ["waits for the Node", publish, { migrated: ebs }, "waitForNode"],
    ["removes a driver from it", remove, { node }, "update: ; kubernetes.io/aws-ebs"],
  ])("%s", (_name, change, observed, expected) => {
    expect(written({ change, stored, ...observed })).toBe(expected);
  });

  it("that is there by now leaves it", () => {
    const again = { ...node, metadata: { ...node.metadata, uid: "u-0" } };
    expect(written({ change: publish, stored, node: again, migrated: ebs })).toBe("settle");
  });
});

describe("a write that fails", () => {
  const reason = (name: string) =>
    new KubeApiError({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      code: 409,
      reason: name,
      message: "as the test wants",
    });
  const failed = (error: unknown, attempts: number) => ({
    ...nothing,
    change: set,
    failure: { error, attempts },
  });
  it.each([
    ["is repeated when the object changed", "Conflict", 1, "retry"],
    ["is repeated when the object was made meanwhile", "AlreadyExists", 1, "retry"],
    ["is repeated three times", "Conflict", 3, "retry"],
    ["fails after the fourth", "Conflict", 4, "fail"],
    ["fails at once for another reason", "Forbidden", 1, "fail"],
  ])("%s", (_name, name, attempts, step) => {
    const error = reason(name);
    const rest = step === "retry" ? { attempts } : { error };
    expect(decide(failed(error, attempts))).toEqual({ step, ...rest });
  });

  it("is repeated without the drivers of a CSINodeInfo when it is refused with them", () => {
    const error = reason("Invalid");
    expect(decide({ ...failed(error, 1), oldDrivers: [other] })).toEqual({ step: "dropOldDrivers", error });
    expect(decide(failed(error, 1))).toEqual({ step: "fail", error });
  });

  it("fails with what is no answer, too", () => {
    const error = new Error("reset");
    expect(decide(failed(error, 1))).toEqual({ step: "fail", error });
  });
});

it("takes the null that an API server gives for an empty list of drivers", () => {
  const stored = { metadata: { name: "node-1" }, spec: { drivers: null } } as unknown as CSINode;
  expect(withDriver(stored, "ebs.csi.aws.com", info).spec.drivers).toEqual([
    { name: "ebs.csi.aws.com", nodeID: "i-1" },
  ]);
});
