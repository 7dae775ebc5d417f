import type {
  CSINode,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Stored,
} from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ClusterView } from "./cluster-view.ts";
import { reasonAgainst } from "./reason-against.ts";

const driver = "ebs.csi.aws.com";
const plugin = "kubernetes.io/aws-ebs";

function aNode(name: string, zone: string, over: object = {}): Stored<Node> {
  return {
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "topology.ebs.csi.aws.com/zone": zone,
      },
    },
    spec: {},
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      allocatable: { "attachable-volumes-aws-ebs": "2" },
    },
    ...over,
  } as unknown as Stored<Node>;
}

function aVolume(name: string, zone: string): Stored<PersistentVolume> {
  const key = "topology.kubernetes.io/zone";
  const term = { matchExpressions: [{ key, operator: "In", values: [zone] }] };
  return {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      awsElasticBlockStore: { volumeID: `aws://${zone}/vol-${name}` },
      nodeAffinity: { required: { nodeSelectorTerms: [term] } },
    },
  } as unknown as Stored<PersistentVolume>;
}

function aClaim(name: string, over: { volume?: string; annotations?: Record<string, string> } = {}) {
  const bound = over.volume === undefined ? {} : { "pv.kubernetes.io/bind-completed": "yes" };
  return {
    metadata: { name, namespace: "default", annotations: { ...bound, ...over.annotations } },
    spec: {
      storageClassName: "late",
      ...(over.volume === undefined ? {} : { volumeName: over.volume }),
    },
  } as unknown as Stored<PersistentVolumeClaim>;
}

function aPod(name: string, claims: string[] = [], spec: object = {}): Stored<Pod> {
  return {
    metadata: { name, namespace: "default", labels: { app: "x" } },
    spec: {
      containers: [],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ...spec,
    },
  } as unknown as Stored<Pod>;
}

interface World {
  nodes?: Stored<Node>[];
  pods?: Record<string, Stored<Pod>[]>;
  claims?: Stored<PersistentVolumeClaim>[];
  volumes?: Stored<PersistentVolume>[];
  csiNode?: { migrated?: boolean; count?: number };
  bindingMode?: string;
}

function aView(world: World): ClusterView {
  const annotations =
    world.csiNode?.migrated === true ? { "storage.alpha.kubernetes.io/migrated-plugins": plugin } : {};
  return {
    nodes: world.nodes ?? [],
    podsOn: (name) => world.pods?.[name] ?? [],
    claim: (_namespace, name) => world.claims?.find((c) => c.metadata.name === name),
    volume: (name) => world.volumes?.find((v) => v.metadata.name === name),
    storageClass: () =>
      ({ volumeBindingMode: world.bindingMode ?? "WaitForFirstConsumer" }) as unknown as Stored<StorageClass>,
    csiNode: (name) =>
      world.csiNode === undefined
        ? undefined
        : ({
            metadata: { name, annotations },
            spec: {
              drivers: [{ name: driver, nodeID: "i", allocatable: { count: world.csiNode.count ?? 1 } }],
            },
          } as unknown as Stored<CSINode>),
    csiDriver: () => undefined,
    attachmentsOn: () => [],
    capacities: () => undefined,
    podsUsing: () => [],
    availableVolumes: () => [],
    volumesNaming: () => [],
    migrates: () => true,
  };
}

describe("reasonAgainst", () => {
  const node = aNode("n1", "a");
  const cases: {
    name: string;
    world?: World;
    pod?: Stored<Pod>;
    node?: Stored<Node>;
    reason: string | undefined;
  }[] = [
    { name: "an ordinary pod fits an ordinary node", reason: undefined },
    {
      name: "a cordoned node",
      node: aNode("n1", "a", { spec: { unschedulable: true } }),
      reason: "node(s) were unschedulable",
    },
    {
      name: "a node that is not ready",
      node: aNode("n1", "a", { status: {} }),
      reason: "node(s) were not ready",
    },
    {
      name: "a node selector",
      pod: aPod("p", [], { nodeSelector: { disk: "ssd" } }),
      reason: "node(s) didn't match Pod's node affinity/selector",
    },
    {
      name: "a taint",
      node: aNode("n1", "a", { spec: { taints: [{ key: "k", value: "v", effect: "NoSchedule" }] } }),
      reason: "node(s) had taints that the pod didn't tolerate",
    },
    {
      name: "a tolerated taint",
      node: aNode("n1", "a", { spec: { taints: [{ key: "k", value: "v", effect: "NoSchedule" }] } }),
      pod: aPod("p", [], { tolerations: [{ key: "k", operator: "Exists" }] }),
      reason: undefined,
    },
    {
      name: "a claim that is not there",
      pod: aPod("p", ["c"]),
      reason: 'persistentvolumeclaim "c" not found',
    },
    {
      name: "a volume of another zone",
      pod: aPod("p", ["c"]),
      world: { claims: [aClaim("c", { volume: "v" })], volumes: [aVolume("v", "b")] },
      reason: "node(s) had volume node affinity conflict",
    },
    {
      name: "a volume of this zone, also where the node has migrated and the PV is translated",
      pod: aPod("p", ["c"]),
      world: {
        claims: [aClaim("c", { volume: "v" })],
        volumes: [aVolume("v", "a")],
        csiNode: { migrated: true },
      },
      reason: undefined,
    },
    {
      name: "an unbound claim of a class that binds at once",
      pod: aPod("p", ["c"]),
      world: { claims: [aClaim("c")], bindingMode: "Immediate" },
      reason: "pod has unbound immediate PersistentVolumeClaims",
    },
    {
      name: "a claim that waits for its first consumer",
      pod: aPod("p", ["c"]),
      world: { claims: [aClaim("c")] },
      reason: undefined,
    },
    {
      name: "a claim that is being provisioned for another node",
      pod: aPod("p", ["c"]),
      world: { claims: [aClaim("c", { annotations: { "volume.kubernetes.io/selected-node": "n2" } })] },
      reason: "node(s) didn't find available persistent volumes to bind",
    },
  ];
  for (const { name, world, pod, node: over, reason } of cases) {
    it(name, () => {
      const where = over ?? node;
      expect(reasonAgainst(aView({ nodes: [where], ...world }), pod ?? aPod("p"), where)).toBe(reason);
    });
  }

  it("keeps pods of one kind apart where they ask for it", () => {
    const apart = aPod("p", [], {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "x" } } },
          ],
        },
      },
    });
    const nodes = [node, aNode("n2", "b")];
    const view = aView({ nodes, pods: { n1: [aPod("other")] } });
    expect(reasonAgainst(view, apart, node)).toBe("node(s) didn't match pod anti-affinity rules");
    expect(nodes[1] && reasonAgainst(view, apart, nodes[1])).toBeUndefined();
  });

  describe("attachment slots", () => {
    const claims = ["c1", "c2", "c3"].map((c, i) => aClaim(c, { volume: `v${i + 1}` }));
    const volumes = ["v1", "v2", "v3"].map((v) => aVolume(v, "a"));
    const world = (csiNode: World["csiNode"], ...used: string[]): World => ({
      nodes: [node],
      claims,
      volumes,
      ...(csiNode === undefined ? {} : { csiNode }),
      pods: { n1: [aPod("other", used)] },
    });
    const full = "node(s) exceed max volume count";
    it("in-tree volumes count against the plugin's limit where the node has not migrated", () => {
      expect(reasonAgainst(aView(world({ count: 1 }, "c1")), aPod("p", ["c2"]), node)).toBeUndefined();
      expect(reasonAgainst(aView(world({ count: 1 }, "c1", "c2")), aPod("p", ["c3"]), node)).toBe(full);
    });
    it("and against the driver's limit where it has", () => {
      expect(reasonAgainst(aView(world({ migrated: true, count: 1 }, "c1")), aPod("p", ["c2"]), node)).toBe(
        full,
      );
    });
    it("a volume that is there already takes no second slot", () => {
      expect(
        reasonAgainst(aView(world({ migrated: true, count: 1 }, "c1")), aPod("p", ["c1"]), node),
      ).toBeUndefined();
    });
    it("a pod whose volume cannot be translated keeps no other off the node, and takes a slot of its own", () => {
      const bad = {
        metadata: { name: "bad" },
        spec: { awsElasticBlockStore: { volumeID: "aws://a/not-a-volume" } },
      } as unknown as Stored<PersistentVolume>;
      for (const csiNode of [undefined, { migrated: true, count: 1 }]) {
        const base = world(csiNode, "cbad");
        const view = aView({
          ...base,
          claims: [...claims, aClaim("cbad", { volume: "bad" })],
          volumes: [...volumes, bad],
        });
        expect(reasonAgainst(view, aPod("p", ["c1"]), node)).toBeUndefined();
      }
      const migrated = aView({
        ...world({ migrated: true }),
        claims: [aClaim("cbad", { volume: "bad" })],
        volumes: [bad],
      });
      expect(reasonAgainst(migrated, aPod("p", ["cbad"]), node)).toContain("cannot be translated");
    });
  });
});
