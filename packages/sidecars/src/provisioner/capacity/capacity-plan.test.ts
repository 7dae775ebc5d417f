import type { CSINode, CSIStorageCapacity, Node, StorageClass, Stored } from "@longshore/kube";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { topologySegments } from "../topology/topology-segments.ts";
import { planCapacity } from "./capacity-plan.ts";
import { managedBy } from "./managed-by.ts";

const driverName = "disk.example.com";
const late = "WaitForFirstConsumer";

const aClass = (name: string, over: Partial<StorageClass> = {}): StorageClass => ({
  metadata: { name },
  provisioner: driverName,
  volumeBindingMode: late,
  ...over,
});

const anObject = (name: string, storageClassName: string, zone: string, created = "2026-01-01T00:00:00Z") =>
  ({
    metadata: { name, namespace: "csi", uid: name, resourceVersion: "1", creationTimestamp: created },
    storageClassName,
    nodeTopology: { matchLabels: { zone } },
  }) as Stored<CSIStorageCapacity>;

const question = {
  driverName,
  segments: [{ zone: "a" }, { zone: "b" }],
  storageClasses: [aClass("fast")],
  objects: [] as readonly Stored<CSIStorageCapacity>[],
  forImmediateBinding: false,
};

describe("the plan of capacity objects", () => {
  it("has one for each class and part of the cluster", () => {
    const storageClasses = [aClass("fast"), aClass("slow")];
    const { items } = planCapacity({ ...question, storageClasses });
    expect([...items.values()].map((item) => [item.storageClass.metadata?.name, item.segments])).toEqual([
      ["fast", { zone: "a" }],
      ["fast", { zone: "b" }],
      ["slow", { zone: "a" }],
      ["slow", { zone: "b" }],
    ]);
  });

  it.each<[string, Partial<StorageClass>, boolean, number]>([
    ["another driver's class", { provisioner: "other" }, false, 0],
    ["immediate binding", { volumeBindingMode: "Immediate" }, false, 0],
    ["no binding mode, which is immediate", { volumeBindingMode: "Immediate" }, false, 0],
    ["immediate binding, if asked for", { volumeBindingMode: "Immediate" }, true, 2],
  ])("%s", (_, over, forImmediateBinding, count) => {
    const storageClasses = [aClass("fast", over)];
    expect(planCapacity({ ...question, storageClasses, forImmediateBinding }).items.size).toBe(count);
  });

  it("keeps the oldest of several objects, and drops those that nothing asks for", () => {
    const objects = [
      anObject("young", "fast", "a", "2026-01-02T00:00:00Z"),
      anObject("old", "fast", "a"),
      anObject("gone-zone", "fast", "c"),
      anObject("gone-class", "other", "a"),
      {
        ...anObject("odd", "fast", "b"),
        nodeTopology: { matchExpressions: [{ key: "zone", operator: "Exists" }] },
      },
      { ...anObject("everywhere", "fast", "b"), nodeTopology: undefined },
    ] as Stored<CSIStorageCapacity>[];
    const { present, obsolete } = planCapacity({ ...question, objects });
    expect([...present.values()].map(({ metadata }) => metadata.name)).toEqual(["old"]);
    expect(obsolete.map(({ metadata }) => metadata.name).sort()).toEqual([
      "everywhere",
      "gone-class",
      "gone-zone",
      "odd",
      "young",
    ]);
  });

  it("decides the same in every process, whatever the order of the cache", () => {
    const objects = ["x", "y", "z"].flatMap((name) => [
      anObject(name, "fast", "a"),
      anObject(`${name}2`, "fast", "b"),
    ]);
    fc.assert(
      fc.property(fc.shuffledSubarray(objects, { minLength: objects.length }), (shuffled) => {
        const { present, obsolete } = planCapacity({ ...question, objects: shuffled });
        expect([...present.values()].map(({ metadata }) => metadata.name).sort()).toEqual(["x", "x2"]);
        expect(obsolete).toHaveLength(4);
      }),
    );
  });
});

describe("the parts of a cluster", () => {
  const node = (name: string, labels: Record<string, string>): Node => ({ metadata: { name, labels } });
  const csiNode = (name: string, topologyKeys: string[], driver = driverName): CSINode => ({
    metadata: { name },
    spec: { drivers: [{ name: driver, nodeID: name, topologyKeys }] },
  });

  it("are those of nodes with the driver, each once", () => {
    const nodes = [
      node("1", { zone: "a", other: "x" }),
      node("2", { zone: "a" }),
      node("3", { zone: "b" }),
      node("4", { zone: "c" }),
      node("5", {}),
      node("6", { zone: "d" }),
    ];
    const csiNodes = [
      csiNode("1", ["zone"]),
      csiNode("2", ["zone"]),
      csiNode("3", ["zone"]),
      csiNode("4", ["zone"], "other"),
      csiNode("5", ["zone"]),
      csiNode("6", []),
      csiNode("gone", ["zone"]),
    ];
    expect(topologySegments(driverName, csiNodes, nodes)).toEqual([{ zone: "a" }, { zone: "b" }]);
  });
});

describe("the label of the manager", () => {
  it.each<[string | undefined, string]>([
    [undefined, "external-provisioner"],
    ["node-1", "external-provisioner-node-1"],
  ])("of node %s", (node, label) => expect(managedBy(node)).toBe(label));

  it("is never longer than a label may be, and differs for different long names", () => {
    const labels = [50, 53, 54, 63, 253].flatMap((length) =>
      ["a", "b"].map((c) => managedBy(c.repeat(length))),
    );
    for (const label of labels) expect(label.length).toBeLessThanOrEqual(63);
    expect(new Set(labels).size).toBe(labels.length);
    for (const label of labels) expect(label).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
  });
});
