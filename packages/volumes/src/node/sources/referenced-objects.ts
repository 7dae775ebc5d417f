/**
 * The ConfigMaps and Secrets that volumes of this node are made from: each is followed by a watch of its own, as the node
 * authorizer demands, from the first volume that reads it until the last one is gone. Source: docs/behaviour/pod-volumes.md 5.
 *
 * Invariant: what an event costs depends on the volumes of this node that have read the object, on nothing else.
 */
import {
  type Informer,
  type KubeClient,
  type KubeObject,
  type Resource,
  type Stored,
  startInformer,
} from "@longshore/kube";
import { type Component, type RuntimeEnv, stopAll, withDeadline } from "@longshore/runtime";
import { TransientOperationError } from "../../framework/node-error-kind.ts";

/** How long a volume waits for the first reading of an object, in milliseconds. */
const firstReadMs = 10_000;

interface Followed {
  readonly informer: Informer<KubeObject>;
  /** Unique names of the volumes that have read it. */
  readonly readers: Set<string>;
}

/** Follows objects for volumes. */
export class ReferencedObjects implements Component {
  readonly #env: RuntimeEnv & { readonly kube: KubeClient };
  readonly #onChange: (uniqueName: string) => void;
  readonly #followed = new Map<string, Followed>();
  readonly #byReader = new Map<string, Set<string>>();
  readonly #ending = new Set<Promise<void>>();

  /** @param onChange called for each volume that has read an object that has changed */
  constructor(env: RuntimeEnv & { readonly kube: KubeClient }, onChange: (uniqueName: string) => void) {
    this.#env = env;
    this.#onChange = onChange;
  }

  /** The object as it is followed, or undefined: there is none. @throws TransientOperationError when it cannot be read now */
  async read<T extends KubeObject>(
    resource: Resource<T>,
    ref: { readonly namespace: string; readonly name: string },
    reader: string,
    signal: AbortSignal,
  ): Promise<Stored<T> | undefined> {
    const key = `${ref.namespace}/${ref.name}`;
    const { informer } = this.#follow(resource, ref, reader);
    try {
      await withDeadline(this.#env.clock, firstReadMs, signal, (within) => informer.synced(within));
    } catch (cause) {
      signal.throwIfAborted();
      throw new TransientOperationError(`${resource.kind} ${key} cannot be read now`, { cause });
    }
    return informer.get(key) as Stored<T> | undefined;
  }

  /** The volume reads nothing any more. */
  release(reader: string): void {
    for (const id of this.#byReader.get(reader) ?? []) {
      const followed = this.#followed.get(id);
      followed?.readers.delete(reader);
      if (followed === undefined || followed.readers.size > 0) continue;
      this.#followed.delete(id);
      const ending: Promise<void> = followed.informer.stop().finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
    this.#byReader.delete(reader);
  }

  async stop(): Promise<void> {
    const informers = [...this.#followed.values()].map(({ informer }) => informer);
    this.#followed.clear();
    this.#byReader.clear();
    await stopAll(informers);
    await Promise.allSettled([...this.#ending]);
  }

  #follow<T extends KubeObject>(
    resource: Resource<T>,
    { namespace, name }: { readonly namespace: string; readonly name: string },
    reader: string,
  ): Followed {
    const id = `${resource.plural} ${namespace}/${name}`;
    const followed = this.#followed.get(id) ?? this.#start(id, resource, namespace, name);
    followed.readers.add(reader);
    const ids = this.#byReader.get(reader) ?? new Set();
    this.#byReader.set(reader, ids.add(id));
    return followed;
  }

  #start(id: string, resource: Resource<KubeObject>, namespace: string, name: string): Followed {
    const fieldSelector = `metadata.name=${name}`;
    const informer = startInformer(this.#env, resource, { namespace, fieldSelector });
    const followed: Followed = { informer, readers: new Set() };
    const changed = () => {
      for (const reader of followed.readers) this.#onChange(reader);
    };
    informer.onChange({
      // What the first list finds is no change: the volume that waits for it gets it.
      added: () => informer.hasSynced() && changed(),
      updated: changed,
      deleted: changed,
    });
    this.#followed.set(id, followed);
    return followed;
  }
}
