/** A cluster of objects in memory, and a crossing of it on the virtual clock. */
import {
  KubeApiError,
  type KubeClient,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "@longshore/kube";
import { noMeter, SeededRandom, SimulatedHost, silentLogger, VirtualClock } from "@longshore/runtime";
import { runCrossing } from "../crossing.ts";
import type { CrossingOptions } from "../crossing-options.ts";
import { type CrossingSubject, crossingSubject } from "../crossing-subject.ts";
import type { GateValues, Platform } from "../platform.ts";

/** What the crossing moves. */
export const subject: CrossingSubject = crossingSubject("aws-ebs");
const driver = subject.driverName;

/** A cluster of objects by plural; evictions are answered by `evict`. */
export function aCluster(
  evict: (cluster: Cluster, podName: string) => void,
  pods: KubeObject[] = [],
): { readonly cluster: Cluster; readonly kube: KubeClient } {
  const cluster: Cluster = {
    objects: new Map([
      ["nodes", []],
      ["pods", pods],
      ["csinodes", []],
    ]),
    addNode,
  };
  function addNode(name: string) {
    cluster.objects.get("nodes")?.push({
      metadata: { name },
      status: { conditions: [{ type: "Ready", status: "True" }] },
    } as unknown as KubeObject);
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
/** Its objects, by plural. */
export interface Cluster {
  readonly objects: Map<string, KubeObject[]>;
  addNode(name: string): void;
}

/** How a crossing of the fake cluster is run. */
export interface FakeCrossing extends Partial<CrossingOptions> {
  readonly onFlip?: (node: string) => void;
  readonly platform?: Partial<Platform>;
  readonly clock?: VirtualClock;
  readonly host?: SimulatedHost;
  readonly signal?: AbortSignal;
}

/** The platform of the fake cluster, whose gates take effect at once. */
export function fakePlatform(onFlip: (node: string) => void = () => {}): Platform {
  const flipped = new Map<string, GateValues>();
  return {
    name: "fake",
    controlPlaneGates: async () => ({}),
    setControlPlaneGates: async () => {},
    nodeGates: async (node) => flipped.get(node) ?? {},
    setNodeGates: async (node, values) => {
      flipped.set(node, values);
      onFlip(node);
    },
  };
}

/** Runs the crossing on the virtual clock. */
export function cross(kube: KubeClient, fake: FakeCrossing = {}): Promise<unknown> {
  const {
    onFlip,
    platform,
    clock = new VirtualClock(),
    signal = new AbortController().signal,
    ...rest
  } = fake;
  const { host = new SimulatedHost({ name: "operator" }), ...options } = rest;
  const env = {
    clock,
    host,
    kube,
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
    platform: { ...fakePlatform(onFlip), ...platform },
  };
  const run = runCrossing(
    env,
    { subject, direction: "migrate", journalFile, stepTimeoutMs: 60_000, ...options },
    signal,
  );
  return clock.run(run);
}

/** Where the fake crossing's journal lies. */
export const journalFile = "/j.json";

/** An answer of the API server to an eviction that a budget does not allow. */
export const tooManyRequests = new KubeApiError({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code: 429,
  reason: "TooManyRequests",
  message: "no",
});

/** A pod of a StatefulSet on the first node. */
export const pod = {
  metadata: {
    name: "w-0",
    namespace: "d",
    uid: "u",
    ownerReferences: [{ kind: "StatefulSet", controller: true }],
  },
  spec: { nodeName: "n1" },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
} as unknown as KubeObject;
