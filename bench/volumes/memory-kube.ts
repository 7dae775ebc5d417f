/**
 * An API server of maps: lists, watches and writes cost next to nothing, so that what is measured is the controller. It
 * also is the driver's attacher: what is created is attached at once, what is deleted is gone at once.
 */
import {
  type KubeClient,
  type KubeObject,
  keyOf,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";

type Anything = Stored<KubeObject> & { spec?: unknown; status?: unknown };
interface Event {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Anything;
}
type Members = Record<string, unknown>;

export class MemoryKube {
  readonly #objects = new Map<string, Map<string, Anything>>();
  readonly #watches = new Map<string, Set<(event: Event) => void>>();
  #version = 1;
  /** Called after each write. */
  onWrite: (type: Event["type"], plural: string, object: Anything) => void = () => {};

  /** Stores an object as it is. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): void {
    const objects = this.#of(resource.plural);
    const before = objects.get(keyOf(object as unknown as Anything));
    const metadata = {
      uid: `${resource.plural}-${object.metadata?.name}`,
      ...object.metadata,
      resourceVersion: String(++this.#version),
    };
    const kind = { apiVersion: "v1", kind: resource.kind };
    const stored = { ...kind, ...object, metadata } as unknown as Anything;
    objects.set(keyOf(stored), stored);
    this.#emit(resource.plural, { type: before === undefined ? "ADDED" : "MODIFIED", object: stored });
  }

  /** Removes an object. @returns whether it was there */
  remove(plural: string, key: string): boolean {
    const object = this.#of(plural).get(key);
    if (object === undefined) return false;
    this.#of(plural).delete(key);
    const resourceVersion = String(++this.#version);
    const last = { ...object, metadata: { ...object.metadata, resourceVersion } };
    this.#emit(plural, { type: "DELETED", object: last });
    return true;
  }

  /** The client of a controller. */
  client(): KubeClient {
    const keyOfRef = (ref: { name: string; namespace?: string }) =>
      ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
    const client = {
      get: async ({ plural }: Resource<KubeObject>, ref: { name: string }) =>
        this.#of(plural).get(keyOfRef(ref)),
      list: async ({ plural }: Resource<KubeObject>) => ({
        items: [...this.#of(plural).values()],
        resourceVersion: String(this.#version),
      }),
      watch: ({ plural }: Resource<KubeObject>, { signal }: { signal: AbortSignal }) =>
        this.#watch(plural, signal),
      create: async (resource: Resource<KubeObject>, object: KubeObject) => {
        const isAttachment = resource.plural === "volumeattachments";
        this.put(resource, isAttachment ? ({ ...object, status: { attached: true } } as KubeObject) : object);
        return this.#of(resource.plural).get(keyOf(object as Anything));
      },
      patch: async (resource: Resource<KubeObject>, ref: { name: string }, { body }: { body: Members }) => {
        const before = this.#of(resource.plural).get(keyOfRef(ref)) as unknown as Members;
        this.put(resource, merged(before, body) as unknown as KubeObject);
        return this.#of(resource.plural).get(keyOfRef(ref));
      },
      delete: async ({ plural }: Resource<KubeObject>, ref: { name: string }) =>
        this.remove(plural, keyOfRef(ref)),
      servedVersion: async () => "v1",
    };
    return client as unknown as KubeClient;
  }

  #of(plural: string): Map<string, Anything> {
    let objects = this.#objects.get(plural);
    if (objects === undefined) {
      objects = new Map();
      this.#objects.set(plural, objects);
    }
    return objects;
  }

  #emit(plural: string, event: Event): void {
    for (const follow of this.#watches.get(plural) ?? []) follow(event);
    this.onWrite(event.type, plural, event.object);
  }

  async *#watch(plural: string, signal: AbortSignal): AsyncGenerator<Event> {
    const events: Event[] = [];
    let wake = () => {};
    const follow = (event: Event) => {
      events.push(event);
      wake();
    };
    const watches = this.#watches.get(plural) ?? new Set();
    this.#watches.set(plural, watches.add(follow));
    signal.addEventListener("abort", () => wake(), { once: true });
    try {
      while (!signal.aborted) {
        for (let event = events.shift(); event !== undefined; event = events.shift()) yield event;
        if (signal.aborted) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      watches.delete(follow);
    }
  }
}

/** A merge patch (RFC 7386). */
function merged(before: Members | undefined, patch: Members): Members {
  const after: Members = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete after[name];
    else if (typeof value === "object" && !Array.isArray(value)) {
      after[name] = merged(after[name] as Members | undefined, value as Members);
    } else after[name] = value;
  }
  return after;
}

/** `count` volumes of the in-tree EBS plugin on migrated nodes, a hundred a node, each attached by CSI for its pod. */
export function fill(kube: MemoryKube, count: number): void {
  const volumesOfNode = 100;
  for (let index = 0; index < count; index++) {
    addVolume(kube, index);
    const nodeName = nodeOf(index, volumesOfNode);
    addPod(kube, index, nodeName);
    kube.put(resources.volumeAttachments, {
      metadata: { name: attachmentOf(index) },
      spec: { attacher: driver, nodeName, source: { persistentVolumeName: `pv-${index}` } },
      status: { attached: true },
    });
  }
  for (let first = 0; first < count; first += volumesOfNode) {
    const volumes = Array.from({ length: Math.min(volumesOfNode, count - first) }, (_, at) => first + at);
    addNode(kube, nodeOf(first, volumesOfNode), volumes);
  }
}

const driver = "ebs.csi.aws.com";
const plugin = "kubernetes.io/aws-ebs";
const attachmentNames = new Map<number, string>();
/** Set by the benchmark: the name that the controller computes. */
export const names = { attachment: (_handle: string, _driver: string, _node: string) => "" };

/** Name of the VolumeAttachment of a volume that {@link fill} has attached. */
export function attachmentOf(index: number): string {
  let name = attachmentNames.get(index);
  if (name === undefined) {
    name = names.attachment(`vol-${index}`, driver, nodeOf(index, 100));
    attachmentNames.set(index, name);
  }
  return name;
}

export function nodeOf(index: number, volumesOfNode = 100): string {
  return `node-${Math.floor(index / volumesOfNode)}`;
}

/** A managed, migrated node that lists these volumes as attached and in use. */
export function addNode(kube: MemoryKube, name: string, volumes: readonly number[]): void {
  const uniqueNames = volumes.map((index) => `kubernetes.io/csi/${driver}^vol-${index}`);
  kube.put(resources.nodes, {
    metadata: { name, annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" } },
    status: {
      volumesAttached: uniqueNames.map((each) => ({ name: each, devicePath: "" })),
    },
  });
  kube.put(resources.csiNodes, {
    metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugin } },
    spec: { drivers: [{ name: driver, nodeID: name }] },
  });
}

/** A bound volume and its claim. */
export function addVolume(kube: MemoryKube, index: number): void {
  const uid = `claim-${index}`;
  kube.put(resources.persistentVolumeClaims, {
    metadata: { name: uid, namespace: "default", uid },
    spec: { volumeName: `pv-${index}`, accessModes: ["ReadWriteOnce"] },
    status: { phase: "Bound" },
  });
  kube.put(resources.persistentVolumes, {
    metadata: { name: `pv-${index}` },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "5Gi" },
      awsElasticBlockStore: { volumeID: `vol-${index}`, fsType: "ext4" },
      claimRef: { kind: "PersistentVolumeClaim", name: uid, namespace: "default", uid },
    },
  });
}

/** A pod with that volume on the node. */
export function addPod(kube: MemoryKube, index: number, nodeName: string): void {
  kube.put(resources.pods, {
    metadata: { name: `pod-${index}`, namespace: "default" },
    spec: {
      nodeName,
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: `claim-${index}` } }],
    },
    status: { phase: "Running" },
  });
}
