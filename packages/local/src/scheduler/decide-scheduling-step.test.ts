/** The decision of the scheduler, as a table: docs/behaviour/controllers.md B7. */
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Stored,
} from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import type { ClusterView } from "./cluster-view.ts";
import { decideSchedulingStep, type ObservedPod, type Placement } from "./decide-scheduling-step.ts";

const metadata = (name: string, more: object = {}) => ({
  name,
  namespace: "default",
  uid: `uid-${name}`,
  resourceVersion: "1",
  ...more,
});
const aNode = (name: string): Stored<Node> => ({
  metadata: metadata(name),
  status: { conditions: [{ type: "Ready", status: "True" }] },
});
const aPod = (claims: readonly string[] = [], over: object = {}, nodeName?: string): Stored<Pod> => ({
  metadata: metadata("p", over),
  spec: {
    containers: [],
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    ...(nodeName === undefined ? {} : { nodeName }),
  },
});
const aClaim = (name: string, selected?: string): Stored<PersistentVolumeClaim> => ({
  metadata: metadata(name, {
    annotations: selected === undefined ? {} : { "volume.kubernetes.io/selected-node": selected },
  }),
  spec: { storageClassName: "late" },
});
const boundClaim = (name: string): Stored<PersistentVolumeClaim> => ({
  metadata: metadata(name, { annotations: { "pv.kubernetes.io/bind-completed": "yes" } }),
  spec: { volumeName: "v" },
});

const late = { volumeBindingMode: "WaitForFirstConsumer" } as Stored<StorageClass>;
const volume: Stored<PersistentVolume> = { metadata: metadata("v"), spec: {} };

interface World {
  readonly nodes?: readonly string[];
  readonly claims?: readonly Stored<PersistentVolumeClaim>[];
  /** Pods on each node. */
  readonly load?: Readonly<Record<string, number>>;
  /** Volumes that no claim has. */
  readonly available?: readonly Stored<PersistentVolume>[];
}

const aView = ({ nodes = ["n1"], claims = [], load = {}, available = [] }: World): ClusterView => ({
  nodes: nodes.map(aNode),
  podsOn: (name) => Array.from({ length: load[name] ?? 0 }, () => aPod()),
  claim: (_namespace, name) => claims.find((claim) => claim.metadata.name === name),
  volume: () => volume,
  storageClass: () => late,
  csiNode: () => undefined,
  csiDriver: () => undefined,
  attachmentsOn: () => [],
  capacities: () => undefined,
  podsUsing: () => [],
  availableVolumes: () => available,
  volumesNaming: () => [],
  migrates: () => false,
});
const placed = (more: Partial<Placement> = {}): Placement => ({
  nodeName: "n1",
  claimsAsked: [],
  isBound: false,
  ...more,
});
const localDisk = (name: string, storage: string): Stored<PersistentVolume> => ({
  metadata: metadata(name),
  spec: { capacity: { storage }, storageClassName: "late" },
});
const two = { claims: [aClaim("a"), aClaim("b")] };

const table: readonly [string, Partial<ObservedPod>, World, object][] = [
  ["a pod that is gone", { pod: undefined }, {}, { step: "forget" }],
  ["a pod that has its node", { pod: aPod([], {}, "n1") }, {}, { step: "forget" }],
  ["a pod that is being deleted", { pod: aPod([], { deletionTimestamp: "now" }) }, {}, { step: "forget" }],
  ["a pod whose binding is written", { isBound: true }, {}, { step: "waitForCache" }],
  [
    "no node at all",
    {},
    { nodes: [] },
    { step: "reportUnschedulable", reason: "0/0 nodes are available: none exist." },
  ],
  [
    "a claim that does not exist",
    { pod: aPod(["a"]) },
    { nodes: ["n1", "n2"] },
    {
      step: "reportUnschedulable",
      reason: '0/2 nodes are available: 2 persistentvolumeclaim "a" not found.',
    },
  ],
  ["the emptiest node", {}, { nodes: ["n1", "n2"], load: { n1: 1 } }, { step: "assume", nodeName: "n2" }],
  ["the first node by name of equal ones", {}, { nodes: ["n2", "n1"] }, { step: "assume", nodeName: "n1" }],
  [
    "the node of a claim that was delayed before",
    { pod: aPod(["a"]) },
    { nodes: ["n1", "n2"], claims: [aClaim("a", "n2")] },
    { step: "assume", nodeName: "n2" },
  ],
  ["a pod without claims", { placement: placed() }, {}, { step: "bind", placement: placed() }],
  [
    "a pod with bound claims",
    { pod: aPod(["a"]), placement: placed() },
    { claims: [boundClaim("a")] },
    { step: "bind" },
  ],
  [
    "the first delayed claim",
    { pod: aPod(["a", "b"]), placement: placed() },
    two,
    { step: "selectNode", claim: aClaim("a") },
  ],
  [
    "the next delayed claim",
    { pod: aPod(["a", "b"]), placement: placed({ claimsAsked: ["a"] }) },
    two,
    { step: "selectNode", claim: aClaim("b") },
  ],
  [
    "a volume that is there already is reserved rather than one made",
    { pod: aPod(["a"]), placement: placed() },
    { claims: [aClaim("a")], available: [localDisk("small", "1Gi"), localDisk("large", "9Gi")] },
    { step: "reserveVolume", volume: localDisk("small", "1Gi") },
  ],
  [
    "the second claim gets another volume",
    { pod: aPod(["a", "b"]), placement: placed({ claimsAsked: ["a"] }) },
    { ...two, available: [localDisk("small", "1Gi"), localDisk("large", "9Gi")] },
    { step: "reserveVolume", volume: localDisk("large", "9Gi") },
  ],
  [
    "or one that is made, where there is no other",
    { pod: aPod(["a", "b"]), placement: placed({ claimsAsked: ["a"] }) },
    { ...two, available: [localDisk("small", "1Gi")] },
    { step: "selectNode", claim: aClaim("b") },
  ],
  [
    "all delayed claims know the node",
    { pod: aPod(["a", "b"]), placement: placed({ claimsAsked: ["a"] }) },
    { claims: [aClaim("a"), aClaim("b", "n1")] },
    { step: "waitForClaims" },
  ],
  [
    "a delayed claim that names another node",
    { pod: aPod(["a"]), placement: placed() },
    { claims: [aClaim("a", "n2")] },
    { step: "selectNode" },
  ],
  [
    "the binding is written",
    { placement: placed({ isBound: true }), isBound: true },
    {},
    { step: "reportScheduled", nodeName: "n1" },
  ],
];

test.each(table)("%s", (_name, observed, world, expected) => {
  const step = pureDecision(decideSchedulingStep)({
    pod: aPod(),
    isBound: false,
    view: aView(world),
    ...observed,
  });
  expect(step).toMatchObject(expected);
});
