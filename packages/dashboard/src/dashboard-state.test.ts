import type { CSINode, Event, Node, PersistentVolume, Pod, Stored, VolumeAttachment } from "@longshore/kube";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type DashboardFacts, type DashboardObjects, dashboardStateOf } from "./dashboard-state.ts";
import { eventsMax } from "./event-state.ts";

const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const meta = (name: string, namespace?: string) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: "1",
  ...(namespace === undefined ? {} : { namespace }),
});

const aNode = (name: string, parts: Partial<Node> = {}): Stored<Node> => ({
  ...parts,
  metadata: { ...parts.metadata, ...meta(name) },
});

const aCsiNode = (name: string, migrated: string): Stored<CSINode> => ({
  metadata: { ...meta(name), annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } },
  spec: { drivers: [{ name: driver, nodeID: `i-${name}` }] },
});

const anEbsVolume = (name: string, id: string): Stored<PersistentVolume> => ({
  metadata: meta(name),
  spec: {
    claimRef: { namespace: "default", name: `data-${name}` },
    awsElasticBlockStore: { volumeID: `aws://us-east-1a/${id}` },
  },
  status: { phase: "Bound" },
});

const aVolumeAttachment = (
  name: string,
  parts: Partial<VolumeAttachment> = {},
): Stored<VolumeAttachment> => ({
  spec: { attacher: driver, nodeName: "node-1", source: { persistentVolumeName: "pv-1" } },
  ...parts,
  metadata: { ...parts.metadata, ...meta(name) },
});

const aPod = (name: string, parts: Partial<Pod> = {}): Stored<Pod> => ({
  ...parts,
  metadata: { ...parts.metadata, ...meta(name, "default") },
});

const nothing: DashboardObjects = {
  nodes: [],
  csiNodes: [],
  pods: [],
  volumes: [],
  attachments: [],
  events: [],
};

const fresh: DashboardFacts = {
  complete: true,
  stale: [],
  crossing: undefined,
  silentSince: () => undefined,
};
const stateOf = (objects: Partial<DashboardObjects>) => dashboardStateOf({ ...nothing, ...objects }, fresh);

test("an empty cluster is a picture too", () => {
  expect(stateOf({})).toMatchObject({ complete: true, nodes: [], plugins: [], events: [] });
});

test.each([
  ["no condition", {}, "Unknown"],
  ["Ready", { status: { conditions: [{ type: "Ready", status: "True" }] } }, "True"],
  ["not Ready", { status: { conditions: [{ type: "Ready", status: "False" }] } }, "False"],
] as const)("readiness of a node: %s", (_name, parts, ready) => {
  expect(stateOf({ nodes: [aNode("node-1", parts as Partial<Node>)] }).nodes[0]?.ready).toBe(ready);
});

test.each([
  ["schedulable", {}, "none"],
  ["cordoned by hand", { spec: { unschedulable: true } }, "administrator"],
  [
    "cordoned by the crossing",
    {
      spec: { unschedulable: true },
      metadata: { annotations: { "longshore.dev/cordoned-for-crossing": "aws-ebs" } },
    },
    "crossing",
  ],
] as const)("cordon of a node: %s", (_name, parts, cordon) => {
  expect(stateOf({ nodes: [aNode("node-1", parts)] }).nodes[0]?.cordon).toBe(cordon);
});

test("a plugin is counted on the nodes that there are, from the first volume on", () => {
  const nodes = ["node-1", "node-2", "node-3"].map((name) => aNode(name));
  const volumes = [anEbsVolume("pv-1", "vol-1")];
  expect(stateOf({ nodes, volumes }).plugins).toEqual([{ name: ebs, nodesMigrated: 0, nodes: 3 }]);
  const csiNodes = [aCsiNode("node-1", ebs), aCsiNode("node-2", ""), aCsiNode("node-gone", ebs)];
  expect(stateOf({ nodes, volumes, csiNodes }).plugins).toEqual([{ name: ebs, nodesMigrated: 1, nodes: 3 }]);
});

test("a volume shows both of its names, and by which path it is attached where", () => {
  const attachedAs = (name: string): Partial<Node> => ({
    status: { volumesAttached: [{ name, devicePath: "" }], volumesInUse: [name] },
  });
  const state = stateOf({
    volumes: [anEbsVolume("pv-1", "vol-1"), anEbsVolume("pv-2", "vol-2")],
    nodes: [
      aNode("node-1", attachedAs(`${ebs}/aws://us-east-1a/vol-1`)),
      aNode("node-2", attachedAs(`kubernetes.io/csi/${driver}^vol-2`)),
      aNode("node-3", attachedAs(`kubernetes.io/csi/${driver}^vol-unknown`)),
    ],
    attachments: [
      aVolumeAttachment("csi-2", {
        spec: { attacher: driver, nodeName: "node-2", source: { persistentVolumeName: "pv-2" } },
        status: { attached: true },
      }),
    ],
  });
  expect(state.volumes).toMatchObject([
    {
      name: "pv-1",
      claim: "default/data-pv-1",
      form: "in-tree",
      owner: ebs,
      handle: "aws://us-east-1a/vol-1",
      csiHandle: "vol-1",
      attachedTo: [{ node: "node-1", path: "in-tree" }],
    },
    { name: "pv-2", attachedTo: [{ node: "node-2", path: "csi" }] },
  ]);
  expect(state.nodes.map((node) => node.attached[0])).toMatchObject([
    { path: "in-tree", label: "default/data-pv-1" },
    { path: "csi", label: "default/data-pv-2" },
    { path: "csi", label: "vol-unknown" },
  ]);
});

test.each([
  ["asked for", {}, "attaching"],
  ["done", { status: { attached: true } }, "attached"],
  ["refused", { status: { attached: false, attachError: { message: "limit reached" } } }, "failed"],
  [
    "being undone",
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { attached: true } },
    "detaching",
  ],
  [
    "refusing to be undone",
    {
      metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
      status: { attached: true, detachError: { message: "busy" } },
    },
    "failed",
  ],
] as const)("an attachment that is %s", (_name, parts, phase) => {
  expect(stateOf({ attachments: [aVolumeAttachment("csi-1", parts)] }).attachments[0]?.phase).toBe(phase);
});

test("a volume has its size, and the pods that use its claim, those of generic ephemeral volumes among them", () => {
  const uses = (claimName: string): Partial<Pod> => ({
    spec: { containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] },
  });
  const ephemeral: Partial<Pod> = {
    spec: { containers: [], volumes: [{ name: "pv", ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
  };
  const volume = anEbsVolume("pv", "vol-1");
  const pods = [
    aPod("b", uses("data-pv")),
    aPod("a", uses("data-pv")),
    aPod("data", ephemeral),
    aPod("ended", { ...uses("data-pv"), status: { phase: "Succeeded" } }),
    aPod("other", uses("other")),
  ];
  const volumes = [{ ...volume, spec: { ...volume.spec, capacity: { storage: "8Gi" } } }];
  expect(stateOf({ volumes, pods }).volumes).toMatchObject([
    { size: "8Gi", pods: ["default/a", "default/b", "default/data"] },
  ]);
});

test("pods stand at their node, or among those that wait for one", () => {
  const state = stateOf({
    nodes: [aNode("node-1")],
    pods: [
      aPod("writer-0", {
        spec: {
          nodeName: "node-1",
          containers: [],
          volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-writer-0" } }],
        },
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      }),
      aPod("writer-1", { spec: { containers: [] } }),
    ],
  });
  expect(state.nodes[0]?.pods).toEqual([
    { name: "default/writer-0", phase: "Running", ready: true, claims: ["data-writer-0"] },
  ]);
  expect(state.pendingPods.map((pod) => pod.name)).toEqual(["default/writer-1"]);
});

test("events: the newest first, and not without bound", () => {
  const event = (i: number): Stored<Event> => ({
    metadata: meta(`event-${i}`, "default"),
    involvedObject: { kind: "Pod", namespace: "default", name: "writer-0" },
    reason: "Mounted",
    lastTimestamp: new Date(i * 1000).toISOString(),
  });
  const { events } = stateOf({ events: Array.from({ length: eventsMax + 5 }, (_, i) => event(i)) });
  expect(events).toHaveLength(eventsMax);
  expect(events[0]).toMatchObject({ time: "1970-01-01T00:01:04.000Z", object: "Pod default/writer-0" });
});

test("the order in which objects come does not show", () => {
  const objects = {
    nodes: ["node-1", "node-2", "node-3"].map((name) => aNode(name)),
    csiNodes: [aCsiNode("node-1", ebs), aCsiNode("node-2", "")],
    pods: ["a", "b", "c"].map((name) => aPod(name)),
    volumes: ["1", "2", "3"].map((i) => anEbsVolume(`pv-${i}`, `vol-${i}`)),
    attachments: ["x", "y"].map((name) => aVolumeAttachment(name)),
  };
  const picture = stateOf(objects);
  fc.assert(
    fc.property(
      fc.record({
        nodes: permuted(objects.nodes),
        csiNodes: permuted(objects.csiNodes),
        pods: permuted(objects.pods),
        volumes: permuted(objects.volumes),
        attachments: permuted(objects.attachments),
      }),
      (shuffled) => {
        expect(stateOf(shuffled)).toEqual(picture);
      },
    ),
  );
});

function permuted<T>(values: readonly T[]): fc.Arbitrary<T[]> {
  return fc.shuffledSubarray([...values], { minLength: values.length });
}
