import {
  KubeApiError,
  type KubeClient,
  type KubeObject,
  type ObjectRef,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Resource,
  type Stored,
} from "@longshore/kube";
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { GateValues, Platform } from "../platform.ts";
import { objectsCarryingMarks, runCrossing } from "./crossing.ts";
import { crossingSubject } from "./subject.ts";

const subject = crossingSubject("aws-ebs");
const driver = subject.driverName;

/** A cluster of objects by plural; evictions are answered by `evict`. */
function aCluster(evict: (cluster: Cluster, podName: string) => void, pods: KubeObject[] = []) {
  const cluster: Cluster = {
    objects: new Map([
      ["nodes", []],
      ["pods", pods],
      ["csinodes", []],
    ]),
    addNode,
  };
  function addNode(name: string) {
    cluster.objects.get("nodes")?.push({ metadata: { name } } as KubeObject);
    const metadata = {
      name,
      annotations: { "storage.alpha.kubernetes.io/migrated-plugins": subject.inTreeName },
    };
    cluster.objects
      .get("csinodes")
      ?.push({ metadata, spec: { drivers: [{ name: driver }] } } as unknown as KubeObject);
  }
  addNode("n1");
  const named = (resource: Resource<KubeObject>, ref: ObjectRef) =>
    (cluster.objects.get(resource.plural) ?? []).find((o) => o.metadata?.name === ref.name);
  const kube = {
    servedVersion: async () => "v1",
    list: async (resource: Resource<KubeObject>) => ({
      items: [...(cluster.objects.get(resource.plural) ?? [])],
    }),
    get: async (resource: Resource<KubeObject>, ref: ObjectRef) => named(resource, ref),
    update: async (resource: Resource<KubeObject>, object: KubeObject) => {
      const all = cluster.objects.get(resource.plural) ?? [];
      cluster.objects.set(
        resource.plural,
        all.map((o) => (o.metadata?.name === object.metadata?.name ? object : o)),
      );
      return object;
    },
    createSubresource: async (_r: unknown, ref: ObjectRef) => evict(cluster, ref.name),
  } as unknown as KubeClient;
  return { cluster, kube };
}
interface Cluster {
  readonly objects: Map<string, KubeObject[]>;
  addNode(name: string): void;
}

function cross(
  kube: KubeClient,
  onFlip: (node: string) => void = () => {},
  signal = new AbortController().signal,
) {
  const clock = new VirtualClock();
  const flipped = new Map<string, GateValues>();
  const platform: Platform = {
    name: "fake",
    controlPlaneGates: async () => ({}),
    setControlPlaneGates: async () => {},
    nodeGates: async (node) => flipped.get(node) ?? {},
    setNodeGates: async (node, values) => {
      flipped.set(node, values);
      onFlip(node);
    },
  };
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter, kube, platform };
  const host = new SimulatedHost({ name: "operator" });
  const options = { subject, direction: "migrate", journalFile: "/j.json", stepTimeoutMs: 60_000 } as const;
  return clock.run(runCrossing({ ...env, host }, options, signal));
}

const pod = {
  metadata: {
    name: "w-0",
    namespace: "d",
    uid: "u",
    ownerReferences: [{ kind: "StatefulSet", controller: true }],
  },
  spec: { nodeName: "n1" },
} as unknown as KubeObject;

describe("runCrossing", () => {
  it("gives up on a drain that a disruption budget never allows, and says what it waits for", async () => {
    const { kube } = aCluster(() => {
      throw new KubeApiError({
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: 429,
        reason: "TooManyRequests",
        message: "no",
      });
    }, [pod]);
    await expect(cross(kube)).rejects.toMatchObject({
      name: "StepTimeoutError",
      message: '"drain" on node n1 still waits for: a disruption budget to let go of d/w-0',
    });
  });

  it("gives up on a pod that never ends", async () => {
    const { kube } = aCluster(() => {}, [pod]);
    await expect(cross(kube)).rejects.toMatchObject({
      message: '"drain" on node n1 still waits for: pod d/w-0 to end',
    });
  });

  it("also carries a node across that joins while it runs", async () => {
    const { kube, cluster } = aCluster((c) => void c.objects.set("pods", []), [pod]);
    const flips: string[] = [];
    await cross(kube, (node) => {
      flips.push(node);
      if (node === "n1") cluster.addNode("n0");
    });
    expect(flips).toEqual(["n1", "n0"]);
  });
});

describe("objectsCarryingMarks", () => {
  it("finds the plugin's volumes and claims, also a claim that is not bound yet", () => {
    const annotations = { "pv.kubernetes.io/migrated-to": driver };
    const volumes = [
      { metadata: { name: "pv1", annotations }, spec: { awsElasticBlockStore: { volumeID: "vol-1" } } },
      { metadata: { name: "pv2" }, spec: { awsElasticBlockStore: { volumeID: "vol-2" } } },
    ] as unknown as Stored<PersistentVolume>[];
    const finalizers = ["longshore.dev/provisioning"];
    const claims = [
      { metadata: { name: "bound", namespace: "d", finalizers }, spec: { volumeName: "pv2" } },
      {
        metadata: {
          name: "pending",
          namespace: "d",
          annotations: { "volume.kubernetes.io/migrated-to": driver, ...annotations },
        },
      },
      { metadata: { name: "other", namespace: "d", finalizers } },
    ] as unknown as Stored<PersistentVolumeClaim>[];
    expect(objectsCarryingMarks(subject, volumes, claims)).toEqual([
      "PersistentVolume pv1",
      "claim d/bound",
      "claim d/pending",
    ]);
  });
});
