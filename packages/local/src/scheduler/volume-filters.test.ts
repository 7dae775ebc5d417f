/** The scheduler's rules of volumes, as tables: docs/behaviour/controllers.md B7. */
import type {
  CSIDriver,
  CSIStorageCapacity,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ClusterView } from "./cluster-view.ts";
import { canReachVolumes, hasAttachmentSlots, isOnlyUser } from "./volume-filters.ts";

const meta = (name: string, more: object = {}) => ({
  name,
  namespace: "default",
  uid: `uid-${name}`,
  resourceVersion: "1",
  ...more,
});

function aNode(labels: Record<string, string> = {}, allocatable: Record<string, string> = {}): Stored<Node> {
  return { metadata: meta("n1", { labels }), spec: {}, status: { allocatable } };
}

function aPod(name: string, volume: object): Stored<Pod> {
  return { metadata: meta(name), spec: { containers: [], volumes: [{ name: "v", ...volume }] } };
}

const claimed = { persistentVolumeClaim: { claimName: "c" } };

function aClaim(spec: object = {}, metadata: object = {}): Stored<PersistentVolumeClaim> {
  return {
    metadata: meta("c", metadata),
    spec: { storageClassName: "late", resources: { requests: { storage: "5Gi" } }, ...spec },
  };
}

const bound = { annotations: { "pv.kubernetes.io/bind-completed": "yes" } };

function aVolume(name: string, spec: object = {}, metadata: object = {}): Stored<PersistentVolume> {
  return {
    metadata: meta(name, metadata),
    spec: { capacity: { storage: "5Gi" }, storageClassName: "late", ...spec },
    status: { phase: "Available" },
  };
}

const onNode = (hostname: string) => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [
        { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [hostname] }] },
      ],
    },
  },
});

interface World {
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly storageClass?: Partial<StorageClass>;
  readonly volumes?: readonly Stored<PersistentVolume>[];
  readonly driver?: Partial<CSIDriver["spec"]>;
  readonly capacities?: readonly Partial<CSIStorageCapacity>[];
  readonly users?: readonly Stored<Pod>[];
  readonly podsOnNode?: readonly Stored<Pod>[];
  readonly migrated?: boolean;
  readonly attachments?: readonly VolumeAttachment["spec"][];
}

function aView(world: World): ClusterView {
  const { claim, volumes = [], driver, users = [], podsOnNode = [] } = world;
  const storageClass = {
    metadata: meta("late"),
    provisioner: "d.example.com",
    volumeBindingMode: "WaitForFirstConsumer",
    ...world.storageClass,
  } as Stored<StorageClass>;
  const migrated = { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs" };
  const drivers = [
    { name: "d.example.com", nodeID: "i", topologyKeys: [], allocatable: { count: 1 } },
    { name: "ebs.csi.aws.com", nodeID: "i", topologyKeys: [], allocatable: { count: 1 } },
  ];
  return {
    nodes: [],
    podsOn: () => podsOnNode,
    claim: (_namespace, name) => (name === claim?.metadata.name ? claim : undefined),
    volume: (name) => volumes.find((volume) => volume.metadata.name === name),
    storageClass: (name) => (name === "late" ? storageClass : undefined),
    csiNode: () => ({
      metadata: meta("n1", world.migrated === true ? { annotations: migrated } : {}),
      spec: { drivers },
    }),
    csiDriver: () => (driver === undefined ? undefined : { metadata: meta("d.example.com"), spec: driver }),
    attachmentsOn: () =>
      (world.attachments ?? []).map((spec, index) => ({ metadata: meta(`va-${index}`), spec })),
    capacities: () =>
      world.capacities?.map((capacity, index) => ({
        metadata: meta(`capacity-${index}`),
        storageClassName: "late",
        ...capacity,
      })) as readonly Stored<CSIStorageCapacity>[] | undefined,
    podsUsing: () => users,
    availableVolumes: () => volumes.filter(({ spec }) => spec?.claimRef === undefined),
    volumesNaming: () => volumes.filter(({ spec }) => spec?.claimRef?.name === "c"),
    migrates: () => true,
  };
}

const none = "node(s) didn't find available persistent volumes to bind";
const local = { storageClass: { provisioner: "kubernetes.io/no-provisioner" } };
const hostname = { "kubernetes.io/hostname": "n1" };

describe("volumes that exist already", () => {
  it.each<[string, World, string | undefined]>([
    ["a local volume of this node", { ...local, volumes: [aVolume("a", onNode("n1"))] }, undefined],
    ["a local volume of another node", { ...local, volumes: [aVolume("a", onNode("n2"))] }, none],
    ["one that is too small", { ...local, volumes: [aVolume("a", { capacity: { storage: "1Gi" } })] }, none],
    ["none, and nothing makes one", local, none],
    ["none, and a driver makes one", {}, undefined],
    [
      "one that names the claim, of this node",
      {
        ...local,
        volumes: [aVolume("a", { ...onNode("n1"), claimRef: { namespace: "default", name: "c" } })],
      },
      undefined,
    ],
    [
      "one that names the claim, of another node, although a driver could make one here",
      { volumes: [aVolume("a", { ...onNode("n2"), claimRef: { namespace: "default", name: "c" } })] },
      none,
    ],
    [
      "one here, although one was being made for another node",
      {
        claim: aClaim({}, { annotations: { "volume.kubernetes.io/selected-node": "n2" } }),
        volumes: [aVolume("a", onNode("n1"))],
      },
      undefined,
    ],
  ])("%s", (_name, world, reason) => {
    const view = aView({ claim: aClaim(), ...world });
    expect(canReachVolumes(view, aPod("p", claimed), aNode(hostname))).toBe(reason);
  });
});

describe("storage capacity (KEP-1472)", () => {
  const full = "node(s) did not have enough free storage";
  const here = { matchLabels: hostname };
  const there = { matchLabels: { "kubernetes.io/hostname": "n2" } };
  const publishes = { driver: { storageCapacity: true } };
  it.each<[string, World, string | undefined]>([
    ["a driver that publishes none", { driver: {}, capacities: [] }, undefined],
    ["no CSIDriver", { capacities: [] }, undefined],
    ["an API server without such objects", publishes, undefined],
    ["nothing published", { ...publishes, capacities: [] }, full],
    ["room here", { ...publishes, capacities: [{ nodeTopology: here, capacity: "5Gi" }] }, undefined],
    ["too little room", { ...publishes, capacities: [{ nodeTopology: here, capacity: "4Gi" }] }, full],
    ["room elsewhere", { ...publishes, capacities: [{ nodeTopology: there, capacity: "9Gi" }] }, full],
    ["room that no node reaches", { ...publishes, capacities: [{ capacity: "9Gi" }] }, full],
    [
      "room, but for smaller volumes only",
      { ...publishes, capacities: [{ nodeTopology: here, capacity: "9Gi", maximumVolumeSize: "1Gi" }] },
      full,
    ],
    [
      "no room, and a volume that is there",
      { ...publishes, capacities: [], volumes: [aVolume("a", onNode("n1"))] },
      undefined,
    ],
  ])("%s", (_name, world, reason) => {
    const view = aView({ claim: aClaim(), ...world });
    expect(canReachVolumes(view, aPod("p", claimed), aNode(hostname))).toBe(reason);
  });
});

describe("zones in labels of volumes", () => {
  const conflict = "node(s) had no available volume zone";
  const zone = (value: string) => ({ "topology.kubernetes.io/zone": value });
  const beta = (value: string) => ({ "failure-domain.beta.kubernetes.io/zone": value });
  it.each<[string, Record<string, string>, Record<string, string>, string | undefined]>([
    ["the same", zone("a"), zone("a"), undefined],
    ["another", zone("b"), zone("a"), conflict],
    ["a regional disk", zone("b__a"), zone("a"), undefined],
    ["the older label on the volume", beta("b"), zone("a"), conflict],
    ["the older label on the node", zone("a"), beta("a"), undefined],
    ["a node without zones", zone("b"), {}, undefined],
    ["a volume without zones", {}, zone("a"), undefined],
    ["another region", { "topology.kubernetes.io/region": "r2" }, zone("a"), conflict],
  ])("%s", (_name, ofVolume, ofNode, reason) => {
    const volume = aVolume("pv", {}, { labels: ofVolume });
    const view = aView({ claim: aClaim({ volumeName: "pv" }, bound), volumes: [volume] });
    expect(canReachVolumes(view, aPod("p", claimed), aNode(ofNode))).toBe(reason);
  });
});

describe("claims of ephemeral volumes", () => {
  const ephemeral = { ephemeral: { volumeClaimTemplate: { spec: {} } } };
  const pod = (): Stored<Pod> => ({
    metadata: meta("p"),
    spec: { containers: [], volumes: [{ name: "v", ...ephemeral }] } as NonNullable<Pod["spec"]>,
  });
  const owned = (uid: string) => ({
    ...aClaim(),
    metadata: meta("p-v", {
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid, controller: true }],
    }),
  });
  it.each<[string, World, string | undefined]>([
    ["its own", { claim: owned("uid-p") }, undefined],
    ["not made yet", {}, 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'],
    [
      "another pod's",
      { claim: owned("uid-q") },
      'PVC "p-v" was not created for pod "p" (pod is not the owner)',
    ],
  ])("%s", (_name, world, reason) => {
    expect(canReachVolumes(aView(world), pod(), aNode())).toBe(reason);
  });

  it("a claim that is being deleted is not used by another pod", () => {
    const claim = aClaim({}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const reason = canReachVolumes(aView({ claim }), aPod("p", claimed), aNode());
    expect(reason).toBe('persistentvolumeclaim "c" is being deleted');
  });
});

describe("ReadWriteOncePod (KEP-2485)", () => {
  const conflict =
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
  const once = aClaim({ accessModes: ["ReadWriteOncePod"] });
  it.each<[string, World, string | undefined]>([
    ["no other pod has it", { claim: once }, undefined],
    ["another pod has it", { claim: once, users: [aPod("q", claimed)] }, conflict],
    ["the pod itself has it", { claim: once, users: [aPod("p", claimed)] }, undefined],
    [
      "of another mode",
      { claim: aClaim({ accessModes: ["ReadWriteOnce"] }), users: [aPod("q", claimed)] },
      undefined,
    ],
  ])("%s", (_name, world, reason) => {
    expect(isOnlyUser(aView(world), aPod("p", claimed))).toBe(reason);
  });
});

describe("slots for volumes that are yet to be made", () => {
  const full = "node(s) exceed max volume count";
  const inline = (id: string) => aPod(`inline-${id}`, { awsElasticBlockStore: { volumeID: id } });
  const ebs = { storageClass: { provisioner: "kubernetes.io/aws-ebs" } };
  const one = { "attachable-volumes-aws-ebs": "1" };
  it.each<[string, World, string | undefined]>([
    ["the first of a driver", {}, undefined],
    ["an in-tree one beside an inline volume", { ...ebs, podsOnNode: [inline("vol-1")] }, full],
    ["an in-tree one alone", ebs, undefined],
    [
      "a migrated one beside an inline volume",
      { ...ebs, migrated: true, podsOnNode: [inline("vol-1")] },
      full,
    ],
    ["a local one takes none", { ...local, podsOnNode: [inline("vol-1")] }, undefined],
  ])("%s", (_name, world, reason) => {
    const view = aView({ claim: aClaim(), ...world });
    expect(hasAttachmentSlots(view, aPod("p", claimed), aNode({}, one))).toBe(reason);
  });
});

describe("slots of what is still attached", () => {
  const full = "node(s) exceed max volume count";
  const attached = (attacher: string, source: VolumeAttachment["spec"]["source"]) => ({
    attacher,
    nodeName: "n1",
    source,
  });
  const csi = (volumeHandle: string) => ({ csi: { driver: "d.example.com", volumeHandle } });
  const ofPv = (name: string) => attached("d.example.com", { persistentVolumeName: name });
  const claim = aClaim({ volumeName: "mine" }, bound);
  const volumes = [aVolume("mine", csi("h")), aVolume("other", csi("i"))];
  it.each<[string, World, string | undefined]>([
    ["the volume itself takes one", { claim, volumes, attachments: [ofPv("mine")] }, undefined],
    ["another whose pod has gone takes one more", { claim, volumes, attachments: [ofPv("other")] }, full],
    ["one whose PersistentVolume has gone too", { claim, volumes, attachments: [ofPv("gone")] }, full],
    [
      "another driver's does not",
      { claim, volumes, attachments: [attached("e.example.com", { persistentVolumeName: "other" })] },
      undefined,
    ],
    [
      "an inline one is known by its handle",
      {
        ...{ claim: aClaim({ volumeName: "tree" }, bound), migrated: true },
        volumes: [aVolume("tree", { awsElasticBlockStore: { volumeID: "vol-1" } })],
        attachments: [
          attached("ebs.csi.aws.com", {
            inlineVolumeSpec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } },
          }),
        ],
      },
      undefined,
    ],
    [
      "a migrated one by that of its translation",
      {
        ...{ claim: aClaim({ volumeName: "tree" }, bound), migrated: true },
        volumes: [aVolume("tree", { awsElasticBlockStore: { volumeID: "aws://z/vol-1" } })],
        attachments: [attached("ebs.csi.aws.com", { persistentVolumeName: "tree" })],
      },
      undefined,
    ],
  ])("%s", (_name, world, reason) => {
    expect(hasAttachmentSlots(aView(world), aPod("p", claimed), aNode())).toBe(reason);
  });
});
