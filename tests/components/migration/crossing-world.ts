/**
 * A cluster of nodes for crossings, on the embedded API server and the virtual clock. Behind the API it does by itself what the agents,
 * the workload controllers and the attach/detach side of a real one do: agents run with the gates that they were started with and
 * show them in their CSINode, evicted pods come back on another node, volumes follow their pods by the path of the node. Every disk
 * remembers by which path it was attached: one that is detached by the other, or is on two nodes, breaks the contract.
 */
import { type ApiServer, createApiServer, memoryStore } from "@longshore/apiserver";
import {
  type KubeClient,
  type KubeObject,
  type PersistentVolume,
  resources,
  updateWithRetry,
} from "@longshore/kube";
import {
  type CrossingSubject,
  type GateValues,
  migratedPluginsOf,
  type Platform,
} from "@longshore/migration";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { csiUniqueVolumeName } from "@longshore/storage";
import { globalMigrationGate, translateInTreePVToCSI } from "@longshore/translation";

const signal = new AbortController().signal;
const annotation = "storage.alpha.kubernetes.io/migrated-plugins";
const tickMs = 500;

/** What the world begins with. */
export interface WorldOptions {
  readonly subjects: readonly CrossingSubject[];
  readonly nodes: number;
  /** Pods with a volume of each plugin. */
  readonly writers: number;
  /** Also a budget that lets one writer go at a time, and a DaemonSet without volumes of a plugin on each node. */
  readonly budget?: boolean;
}

type Path = "in-tree" | "csi";

/** The world. */
export interface CrossingWorld {
  readonly clock: VirtualClock;
  readonly env: RuntimeEnv;
  /** A client that nothing stands before. */
  readonly kube: KubeClient;
  readonly platform: Platform;
  /** What broke the contract, one sentence each. */
  readonly broken: readonly string[];
  /** Names of nodes whose agent is dead. */
  readonly dead: Set<string>;
  /** The API server answers nothing while this is true. */
  away: boolean;
  host(name: string): SimulatedHost;
  /** Where each disk is, and by which path. */
  attached(): ReadonlyMap<string, { readonly nodeName: string; readonly path: Path }>;
  stop(): Promise<void>;
}

/** The PersistentVolume of one writer. */
function volumeOf(subject: CrossingSubject, ordinal: number): KubeObject {
  const name = `${subject.shortName}-${ordinal}`;
  const source =
    subject.shortName === "aws-ebs"
      ? { awsElasticBlockStore: { volumeID: `aws://us-east-1a/vol-${ordinal}`, fsType: "ext4" } }
      : { cinder: { volumeID: `cinder-${ordinal}`, fsType: "ext4" } };
  return {
    metadata: { name },
    spec: {
      ...source,
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      claimRef: { namespace: "default", name },
    },
  } as unknown as KubeObject;
}

const handleOf = (subject: CrossingSubject, ordinal: number): string =>
  subject.shortName === "aws-ebs" ? `aws://us-east-1a/vol-${ordinal}` : `cinder-${ordinal}`;

/** Makes the world; it lives until `stop`. */
export async function crossingWorld(options: WorldOptions): Promise<CrossingWorld> {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(11), logger: silentLogger, meter: noMeter };
  const server: ApiServer = createApiServer(env, { store: memoryStore() });
  const world = new World(options, clock, env, server.client());
  await world.begin();
  return world;
}

class World implements CrossingWorld {
  readonly broken: string[] = [];
  readonly dead = new Set<string>();
  away = false;
  readonly #hosts = new Map<string, SimulatedHost>();
  readonly #controlPlane: Record<string, boolean> = {};
  /** What each agent is configured with, and what it runs with. */
  readonly #configured = new Map<string, GateValues>();
  readonly #running = new Map<string, GateValues>();
  readonly #disks = new Map<string, { nodeName: string; path: Path }>();
  readonly #ended = new AbortController();
  #living: Promise<void> = Promise.resolve();

  readonly options: WorldOptions;
  readonly clock: VirtualClock;
  readonly env: RuntimeEnv;
  readonly kube: KubeClient;

  constructor(options: WorldOptions, clock: VirtualClock, env: RuntimeEnv, kube: KubeClient) {
    this.options = options;
    this.clock = clock;
    this.env = env;
    this.kube = kube;
  }

  attached() {
    return this.#disks;
  }

  host(name: string): SimulatedHost {
    const host = this.#hosts.get(name) ?? new SimulatedHost({ name });
    this.#hosts.set(name, host);
    return host;
  }

  readonly platform: Platform = {
    name: "world",
    controlPlaneGates: async () => this.#controlPlane,
    setControlPlaneGates: async (values, within) => {
      await this.clock.sleep(1000, within);
      Object.assign(this.#controlPlane, values);
    },
    nodeGates: async (name) => (this.dead.has(name) ? undefined : this.#running.get(name)),
    configuredNodeGates: async (name) => this.#configured.get(name),
    setNodeGates: async (name, values, within) => {
      this.#configured.set(name, { ...this.#configured.get(name), ...values });
      const isOn = () =>
        Object.entries(values).every(([gate, value]) => this.#running.get(name)?.[gate] === value);
      while (this.dead.has(name) || !isOn()) await this.clock.sleep(tickMs, within);
    },
  };

  async begin(): Promise<void> {
    const { kube } = this;
    const { nodes, writers, subjects, budget } = this.options;
    // The server makes it by itself, or not yet.
    await kube
      .create(resources.namespaces, { metadata: { name: "kube-system" } }, { signal })
      .catch(() => {});
    for (let n = 1; n <= nodes; n++) await this.#addNode(`n${n}`);
    for (const subject of subjects) {
      for (let ordinal = 0; ordinal < writers; ordinal++) {
        const pv = volumeOf(subject, ordinal);
        const name = pv.metadata?.name ?? "";
        const claim = {
          metadata: { name, namespace: "default" },
          spec: {
            volumeName: name,
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
          },
        } as unknown as KubeObject;
        await kube.create(resources.persistentVolumes, pv as never, { signal });
        await kube.create(resources.persistentVolumeClaims, claim as never, { signal });
      }
    }
    for (let ordinal = 0; ordinal < writers; ordinal++) await this.#startWriter(ordinal);
    if (budget === true) {
      const spec = { maxUnavailable: 1, selector: { matchLabels: { app: "writer" } } };
      await kube.create(
        resources.podDisruptionBudgets,
        { metadata: { name: "writer", namespace: "default" }, spec } as never,
        { signal },
      );
      for (let n = 1; n <= nodes; n++) await this.#startPod(`agent-n${n}`, `n${n}`, "DaemonSet", []);
    }
    this.#living = this.#live().catch(() => {});
    await this.clock.advance(tickMs * 3);
  }

  async stop(): Promise<void> {
    this.#ended.abort(new Error("the world ends"));
    await this.clock.run(this.#living);
  }

  async #addNode(name: string): Promise<void> {
    const { kube } = this;
    const drivers = this.options.subjects.map(({ driverName }) => ({
      name: driverName,
      nodeID: name,
      topologyKeys: [],
    }));
    await kube.create(resources.nodes, { metadata: { name } }, { signal });
    const status = {
      conditions: [{ type: "Ready", status: "True" }],
      nodeInfo: { kubeletVersion: "v1.20.2" },
    };
    await updateWithRetry(kube, resources.nodes, { name }, (node) => ({ ...node, status }) as never, {
      signal,
      subresource: "status",
    });
    await kube.create(resources.csiNodes, { metadata: { name }, spec: { drivers } }, { signal });
    this.#running.set(name, {});
    this.#configured.set(name, {});
  }

  async #startPod(name: string, nodeName: string, kind: string, volumes: readonly object[]): Promise<void> {
    const ownerReferences = [
      { apiVersion: "apps/v1", kind, name: "set", uid: "uid-of-the-set", controller: true },
    ];
    const labels = { app: kind === "DaemonSet" ? "agent" : "writer" };
    const pod = {
      metadata: { name, namespace: "default", ownerReferences, labels },
      spec: { nodeName, containers: [{ name: "c", image: "i" }], volumes, terminationGracePeriodSeconds: 0 },
    };
    await this.kube.create(resources.pods, pod as never, { signal });
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const ref = { name, namespace: "default" };
    await updateWithRetry(this.kube, resources.pods, ref, (found) => ({ ...found, status }) as never, {
      signal,
      subresource: "status",
    });
  }

  /** On the first node that takes pods; on none when there is none. */
  async #startWriter(ordinal: number): Promise<void> {
    const { items } = await this.kube.list(resources.nodes, { signal });
    const free = items.filter(
      ({ spec, metadata }) => spec?.unschedulable !== true && !this.dead.has(metadata.name),
    );
    const node = free[ordinal % Math.max(1, free.length)];
    if (node === undefined) return;
    const volumes = this.options.subjects.map(({ shortName }) => ({
      name: shortName,
      persistentVolumeClaim: { claimName: `${shortName}-${ordinal}` },
    }));
    await this.#startPod(`writer-${ordinal}`, node.metadata.name, "StatefulSet", volumes);
  }

  async #live(): Promise<void> {
    for (;;) {
      await this.clock.sleep(tickMs, this.#ended.signal);
      await this.#agents();
      await this.#workloads();
      await this.#volumes();
      await this.#budgets();
    }
  }

  /** Agents come to run with what they are configured with, and show it. */
  async #agents(): Promise<void> {
    for (const [name, values] of this.#configured) {
      if (this.dead.has(name)) continue;
      const on = this.options.subjects
        .filter(({ gate }) => values[gate] === true && values[globalMigrationGate] === true)
        .map(({ inTreeName }) => inTreeName)
        .join(",");
      await updateWithRetry(
        this.kube,
        resources.csiNodes,
        { name },
        (csiNode) => {
          if ((csiNode.metadata.annotations?.[annotation] ?? "") === on) return undefined;
          const annotations = { ...csiNode.metadata.annotations, [annotation]: on };
          return { ...csiNode, metadata: { ...csiNode.metadata, annotations } };
        },
        { signal },
      );
      this.#running.set(name, values);
    }
  }

  /** A pod that is gone comes back; one of a node that is gone is deleted. */
  async #workloads(): Promise<void> {
    const { items } = await this.kube.list(resources.pods, { namespace: "default", signal });
    const nodes = new Set(
      (await this.kube.list(resources.nodes, { signal })).items.map((n) => n.metadata.name),
    );
    for (const pod of items.filter(({ spec }) => !nodes.has(spec?.nodeName ?? ""))) {
      await this.kube.delete(resources.pods, { name: pod.metadata.name, namespace: "default" }, { signal });
    }
    const names = new Set(items.map(({ metadata }) => metadata.name));
    for (let ordinal = 0; ordinal < this.options.writers; ordinal++) {
      if (!names.has(`writer-${ordinal}`)) await this.#startWriter(ordinal);
    }
  }

  /** Each disk follows the pod that uses it: first off the old node, by the path by which it came, then on. */
  async #volumes(): Promise<void> {
    const { items } = await this.kube.list(resources.pods, { namespace: "default", signal });
    for (const subject of this.options.subjects) {
      for (let ordinal = 0; ordinal < this.options.writers; ordinal++) {
        const name = `${subject.shortName}-${ordinal}`;
        const wanted = items.find(({ metadata }) => metadata.name === `writer-${ordinal}`)?.spec?.nodeName;
        const disk = this.#disks.get(name);
        if (disk !== undefined && disk.nodeName !== wanted)
          await this.#detach(subject, ordinal, disk.nodeName);
        else if (disk === undefined && wanted !== undefined) await this.#attach(subject, ordinal, wanted);
      }
    }
  }

  async #pathOn(subject: CrossingSubject, nodeName: string): Promise<Path> {
    const csiNode = await this.kube.get(resources.csiNodes, { name: nodeName }, { signal });
    return migratedPluginsOf(csiNode).includes(subject.inTreeName) ? "csi" : "in-tree";
  }

  async #attach(subject: CrossingSubject, ordinal: number, nodeName: string): Promise<void> {
    const path = await this.#pathOn(subject, nodeName);
    const name = `${subject.shortName}-${ordinal}`;
    if (path === "csi" && this.#controlPlane[subject.gate] !== true) {
      this.broken.push(
        `C1: ${name} is wanted by CSI on ${nodeName} under a control plane that is not migrated`,
      );
    }
    this.#disks.set(name, { nodeName, path });
    const unique = this.#uniqueName(subject, ordinal, path);
    await this.#setAttached(nodeName, (names) => [...names, unique]);
    if (path === "in-tree") return;
    const source = { persistentVolumeName: name };
    const va = {
      metadata: { name: `csi-${name}` },
      spec: { attacher: subject.driverName, nodeName, source },
    };
    await this.kube.create(resources.volumeAttachments, va, { signal });
    await updateWithRetry(
      this.kube,
      resources.volumeAttachments,
      { name: `csi-${name}` },
      (found) => ({ ...found, status: { attached: true } }),
      { signal, subresource: "status" },
    );
  }

  async #detach(subject: CrossingSubject, ordinal: number, nodeName: string): Promise<void> {
    const name = `${subject.shortName}-${ordinal}`;
    const now = await this.#pathOn(subject, nodeName);
    const { path } = this.#disks.get(name) ?? {};
    if (path !== now)
      this.broken.push(`C1: ${name} was attached to ${nodeName} by ${path}, and ${now} detaches it`);
    if (path === "csi") {
      await this.kube
        .delete(resources.volumeAttachments, { name: `csi-${name}` }, { signal })
        .catch(() => {});
    }
    const unique = this.#uniqueName(subject, ordinal, path ?? "in-tree");
    await this.#setAttached(nodeName, (names) => names.filter((other) => other !== unique));
    this.#disks.delete(name);
  }

  #uniqueName(subject: CrossingSubject, ordinal: number, path: Path): string {
    if (path === "in-tree") return `${subject.inTreeName}/${handleOf(subject, ordinal)}`;
    const handle =
      (translateInTreePVToCSI(volumeOf(subject, ordinal)) as PersistentVolume).spec?.csi?.volumeHandle ?? "";
    return csiUniqueVolumeName(subject.driverName, handle);
  }

  async #setAttached(name: string, change: (names: readonly string[]) => readonly string[]): Promise<void> {
    await updateWithRetry(
      this.kube,
      resources.nodes,
      { name },
      (node) => {
        const before = (node.status?.volumesAttached ?? []).map((volume) => volume.name);
        const volumesAttached = change(before).map((volume) => ({ name: volume, devicePath: "" }));
        return { ...node, status: { ...node.status, volumesAttached } };
      },
      { signal, subresource: "status" },
    );
  }

  /** As the disruption controller has it. */
  async #budgets(): Promise<void> {
    if (this.options.budget !== true) return;
    const { items } = await this.kube.list(resources.pods, { namespace: "default", signal });
    const expectedPods = this.options.writers;
    const currentHealthy = items.filter(
      ({ metadata }) => metadata.name.startsWith("writer-") && metadata.deletionTimestamp === undefined,
    ).length;
    const desiredHealthy = expectedPods - 1;
    const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
    await updateWithRetry(
      this.kube,
      resources.podDisruptionBudgets,
      { name: "writer", namespace: "default" },
      (budget) => ({
        ...budget,
        status: {
          ...budget.status,
          observedGeneration: budget.metadata.generation ?? 0,
          disruptedPods: {},
          expectedPods,
          currentHealthy,
          desiredHealthy,
          disruptionsAllowed,
        },
      }),
      { signal, subresource: "status" },
    );
  }
}
