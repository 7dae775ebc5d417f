/**
 * A control plane under a virtual clock for tests: the embedded API server in memory, builders of
 * objects, and the parts of the world that controllers talk to.
 */
import { setMaxListeners } from "node:events";
import {
  type ApiServer,
  createApiServer,
  type MemoryBackup,
  type MemoryStore,
  memoryStore,
  restoredMemoryStore,
} from "@longshore/apiserver";
import {
  apiVersionOf,
  type CSINode,
  type KubeClient,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import {
  type Component,
  type LogFields,
  type Logger,
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  VirtualClock,
} from "@longshore/runtime";
import { restoredObjects } from "@longshore/storage";

function unboundedSignal(): AbortSignal {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  return signal;
}

/** A line that was logged at warn or error. */
export interface LoggedLine {
  readonly level: "warn" | "error";
  readonly message: string;
  readonly fields: LogFields | undefined;
}

/** An API server in memory with a clock that the test moves. */
export class ControlPlane {
  readonly clock = new VirtualClock(new Date("2026-01-01T00:00:00Z"));
  readonly logged: LoggedLine[] = [];
  readonly env: RuntimeEnv;
  readonly kube: KubeClient;
  readonly signal = unboundedSignal();
  readonly #components: Component[] = [];
  #store: MemoryStore = memoryStore();
  #api: ApiServer;
  #restores = 0;

  constructor(seed = 1) {
    const logger: Logger = {
      debug() {},
      info() {},
      warn: (message, fields) => this.logged.push({ level: "warn", message, fields }),
      error: (message, fields) => this.logged.push({ level: "error", message, fields }),
      child: () => logger,
    };
    this.env = { clock: this.clock, random: new SeededRandom(seed), logger, meter: noMeter };
    this.#api = createApiServer(this.env, { store: this.#store });
    this.kube = this.#followingClient();
  }

  /** A backup of all objects as they are now. */
  backUp(): MemoryBackup {
    return this.#store.backUp();
  }

  /** Restarts the API server on a store that is restored from a backup; what was started goes on. */
  async restore(backup: MemoryBackup): Promise<void> {
    await this.clock.run(this.#api.stop());
    this.#store = restoredMemoryStore(backup, this.env.clock.now(), { restoredObjects });
    // A stream that has not been used: no UID is given twice.
    const random = this.env.random.fork(`restore ${++this.#restores}`);
    this.#api = createApiServer({ ...this.env, random }, { store: this.#store });
  }

  /** A client of whichever API server runs. */
  #followingClient(): KubeClient {
    return new Proxy(this.#api.client(), {
      get: (_first, key) => {
        const now = this.#api.client();
        const member: unknown = Reflect.get(now, key);
        return typeof member === "function" ? member.bind(now) : member;
      },
    });
  }

  /** Keeps a component to be stopped at the end. */
  running<C extends Component>(component: C): C {
    this.#components.push(component);
    return component;
  }

  /** Stops what was started, as a crash of the whole process would not. */
  async stop(): Promise<void> {
    for (const component of this.#components.splice(0).reverse()) {
      await this.clock.run(component.stop());
    }
  }

  /** Lets `ms` of virtual time pass. */
  pass(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Creates the object, and writes its status where it has one. */
  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> {
    const full = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
    const created = await this.clock.run(this.kube.create(resource, full, { signal: this.signal }));
    const status = (object as { status?: unknown }).status;
    if (status === undefined) return created;
    const withStatus = { ...created, status };
    return this.clock.run(this.kube.updateStatus(resource, withStatus, { signal: this.signal }));
  }

  get<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    namespace?: string,
  ): Promise<Stored<T> | undefined> {
    const ref = namespace === undefined ? { name } : { name, namespace };
    return this.clock.run(this.kube.get(resource, ref, { signal: this.signal }));
  }

  async list<T extends KubeObject>(resource: Resource<T>): Promise<readonly Stored<T>[]> {
    return (await this.clock.run(this.kube.list(resource, { signal: this.signal }))).items;
  }

  merge<T extends KubeObject>(
    resource: Resource<T>,
    ref: { name: string; namespace?: string },
    body: unknown,
    subresource?: "status",
  ): Promise<Stored<T>> {
    return this.clock.run(
      this.kube.patch(
        resource,
        ref,
        { type: "merge", body },
        { signal: this.signal, ...(subresource === undefined ? {} : { subresource }) },
      ),
    );
  }

  delete<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): Promise<boolean> {
    const ref = namespace === undefined ? { name } : { name, namespace };
    return this.clock.run(this.kube.delete(resource, ref, { signal: this.signal, gracePeriodSeconds: 0 }));
  }

  /** What the node's status lists as attached. */
  async volumesAttached(nodeName: string): Promise<readonly string[]> {
    const node = await this.get(resources.nodes, nodeName);
    return (node?.status?.volumesAttached ?? []).map(({ name }) => name);
  }

  /** Reports volumes in use, as the node's agent does. */
  async setVolumesInUse(nodeName: string, names: readonly string[]): Promise<void> {
    const body = { status: { volumesInUse: names.length === 0 ? null : names } };
    await this.merge(resources.nodes, { name: nodeName }, body, "status");
  }

  /** Texts of the events on an object, `Type Reason: message`. */
  async eventsOn(kind: string, name: string): Promise<readonly string[]> {
    return (await this.list(resources.events))
      .filter((event) => event.involvedObject.kind === kind && event.involvedObject.name === name)
      .map((event) => `${event.type} ${event.reason}: ${event.message}`);
  }
}

/** A managed node. */
export function aNode(name: string): Node {
  return {
    metadata: { name, annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" } },
  };
}

/** A CSINode. */
export function aCsiNode(name: string, drivers: readonly string[], migrated?: string): CSINode {
  return {
    metadata: {
      name,
      ...(migrated === undefined
        ? {}
        : { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } }),
    },
    spec: { drivers: drivers.map((driver) => ({ name: driver, nodeID: `id-${name}` })) },
  };
}

/** A pod on a node with one volume, called `v`. */
export function aPod(name: string, nodeName: string, volume: object): Pod {
  return {
    metadata: { name, namespace: "default" },
    spec: {
      nodeName,
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", ...volume }],
    },
  };
}

/** An EBS volume and its claim, bound to each other, both stored. */
export async function aBoundEbsVolume(
  plane: ControlPlane,
  name: string,
  volumeID: string,
  options: {
    readonly pv?: object;
    readonly annotations?: Record<string, string>;
    readonly storageClassName?: string;
  } = {},
): Promise<{ pv: Stored<PersistentVolume>; pvc: Stored<PersistentVolumeClaim> }> {
  const pvc = await plane.create(resources.persistentVolumeClaims, {
    metadata: {
      name,
      namespace: "default",
      annotations: {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
      },
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "5Gi" } },
      storageClassName: options.storageClassName ?? "",
      volumeMode: "Filesystem",
      volumeName: `pv-${name}`,
    },
    status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "5Gi" } },
  });
  const pv = await plane.create(resources.persistentVolumes, {
    metadata: {
      name: `pv-${name}`,
      ...(options.annotations === undefined ? {} : { annotations: options.annotations }),
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "5Gi" },
      awsElasticBlockStore: { volumeID, fsType: "ext4" },
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        name,
        namespace: "default",
        uid: pvc.metadata.uid,
      },
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: options.storageClassName ?? "",
      volumeMode: "Filesystem",
      ...options.pv,
    },
    status: { phase: "Bound" },
  });
  return { pv, pvc };
}

/**
 * The simplest attacher: what is there becomes attached at once, what is deleted goes at once.
 * `hold` keeps new attachments undecided.
 */
export function startInstantAttacher(plane: ControlPlane): Component & { hold: boolean } {
  const controller = new AbortController();
  const { signal } = controller;
  const attach = async (attachment: Stored<VolumeAttachment>): Promise<void> => {
    if (attacher.hold || attachment.status?.attached === true) return;
    await plane.kube
      .patch(
        resources.volumeAttachments,
        { name: attachment.metadata.name },
        { type: "merge", body: { status: { attached: true } } },
        { signal, subresource: "status" },
      )
      .catch(() => {});
  };
  const run = (async () => {
    const listed = await plane.kube.list(resources.volumeAttachments, { signal });
    for (const attachment of listed.items) await attach(attachment);
    const events = plane.kube.watch(resources.volumeAttachments, {
      signal,
      resourceVersion: listed.resourceVersion,
    });
    for await (const event of events) {
      if (event.type === "ADDED" || event.type === "MODIFIED") await attach(event.object);
    }
  })().catch(() => {});
  const attacher = {
    hold: false,
    async stop() {
      controller.abort(new Error("stopped"));
      await run;
    },
  };
  return attacher;
}
