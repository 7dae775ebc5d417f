/**
 * A cache of one resource that follows the API server and calls handlers for each change.
 *
 * Invariants
 *  - The calls that a handler gets, folded in order, always equal the cache.
 *  - An object that was deleted and created again under its name is reported as deleted and added, never as updated.
 *  - A deletion that happened while no watch was open is reported as a tombstone, with the last known state.
 *  - A handler that throws harms neither the cache nor the other handlers.
 */
import { abortable, type Component, TaskGroup } from "@longshore/runtime";
import type { KubeEnv } from "../kube-env.ts";
import { type KubeObject, keyOf, type ObjectKey, type Stored } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import type { CacheProgress } from "./cache-progress.ts";
import { compareResourceVersions } from "./compare-resource-versions.ts";
import { type IndexFunction, ObjectCache } from "./object-cache.ts";
import { Reflector, type ReflectorTarget } from "./reflector.ts";

/** What to cache and how. */
export interface InformerOptions<T extends KubeObject> {
  /** One namespace; all of them when left out. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Secondary indexes, by name. */
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** Only apiVersion, kind and metadata are requested and kept (meta/v1 PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
  /** How the first list comes: in pages, or streamed by the watch where the server offers that; default paged. */
  readonly initialList?: "paged" | "streamed";
  /** Keeps who set which field, which is a third of a small object; dropped when left out. */
  readonly keepManagedFields?: boolean;
  /** Shrinks objects before they are kept, into new ones: parts of an object may belong to others as well. */
  readonly transform?: (object: Stored<T>) => Stored<T>;
  /** Interval at which every object is reported as updated again, in milliseconds; never when left out. */
  readonly resyncMs?: number;
}

/** Called for each change, in order and synchronously. Objects are shared: never change them. */
export interface InformerHandler<T extends KubeObject> {
  /** `initial`: it was there when the handler came, or is part of a list, so nothing may have happened to it just now. */
  added?(object: Stored<T>, how: { readonly initial: boolean }): void;
  /** In a resync, `before` and `after` are the same object. */
  updated?(before: Stored<T>, after: Stored<T>): void;
  /** `tombstone`: the watch missed the deletion, and `lastKnown` is what the cache held. */
  deleted?(lastKnown: Stored<T>, how: { readonly tombstone: boolean }): void;
}

/**
 * A running cache of one resource. It is empty until the first list has come, follows the server from then on, and
 * goes on by itself after an error; after `stop` it keeps what it had. What it hands out is shared: never change it. Reads
 * answer at once, and are as old as the watch is behind (`progress`).
 */
export interface Informer<T extends KubeObject> extends Component {
  /** The object under `namespace/name`, or `name` for a kind without namespaces. */
  get(key: ObjectKey): Stored<T> | undefined;
  /** All objects, in no particular order; the same array until something changes. */
  list(): readonly Stored<T>[];
  /** The objects for which the index function returned `value`. @throws Error for an index that there is not */
  byIndex(index: string, value: string): readonly Stored<T>[];
  /** Adds an index unless one of that name exists. */
  addIndex(name: string, valuesOf: IndexFunction<T>): void;
  /** True once the first complete list is in the cache and the handlers were called for it. */
  hasSynced(): boolean;
  /** Resolves once synced; rejects with the signal's reason. */
  synced(signal: AbortSignal): Promise<void>;
  /** Registers a handler and calls `added` for each object in the cache. Returns a function that unregisters it. */
  onChange(handler: InformerHandler<T>): () => void;
  /** How far the cache has followed the server. */
  readonly progress: CacheProgress;
}

/** Starts a cache that follows `resource` until it is stopped. */
export function startInformer<T extends KubeObject>(
  env: KubeEnv,
  resource: Resource<T>,
  options: InformerOptions<T> = {},
): Informer<T> {
  const informer = new CachingInformer(env, resource, options);
  informer.start();
  return informer;
}

type Change<T extends KubeObject> =
  | { readonly kind: "added"; readonly object: Stored<T>; readonly initial: boolean }
  | { readonly kind: "updated"; readonly before: Stored<T>; readonly after: Stored<T> }
  | { readonly kind: "deleted"; readonly object: Stored<T>; readonly tombstone: boolean };

class CachingInformer<T extends KubeObject> implements Informer<T>, ReflectorTarget<T> {
  readonly #env: KubeEnv;
  readonly #resource: Resource<T>;
  readonly #options: InformerOptions<T>;
  readonly #cache = new ObjectCache<T>();
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #tasks: TaskGroup;
  readonly #reflector: Reflector<T>;
  readonly progress: CacheProgress;
  readonly #followers = new Set<(key: ObjectKey | undefined) => void>();
  #listsBegun = 0;
  #lastListApplied = 0;
  #synced = false;
  #resolveSynced: () => void = () => {};
  readonly #whenSynced: Promise<void>;

  constructor(env: KubeEnv, resource: Resource<T>, options: InformerOptions<T>) {
    this.#env = env;
    this.#resource = resource;
    this.#options = options;
    this.#whenSynced = new Promise((resolve) => {
      this.#resolveSynced = resolve;
    });
    this.#tasks = new TaskGroup((error) =>
      env.logger.error(`informer of ${resource.plural} ended`, { error }),
    );
    for (const [name, valuesOf] of Object.entries(options.indexes ?? {})) this.addIndex(name, valuesOf);
    const { transform, keepManagedFields = false } = options;
    const shrink = (object: Stored<T>): Stored<T> => {
      const kept = keepManagedFields ? object : withoutManagedFields(object);
      return transform === undefined ? kept : transform(kept);
    };
    this.#reflector = new Reflector(env, resource, this, { ...options, transform: shrink });
    this.progress = this.#progressOf();
  }

  start(): void {
    const { resyncMs } = this.#options;
    this.#tasks.spawn((signal) => this.#reflector.run(signal));
    if (resyncMs !== undefined) this.#tasks.spawn((signal) => this.#resync(resyncMs, signal));
  }

  stop(): Promise<void> {
    return this.#tasks.stop();
  }

  get(key: ObjectKey): Stored<T> | undefined {
    return this.#cache.get(key);
  }

  list(): readonly Stored<T>[] {
    return this.#cache.list();
  }

  byIndex(index: string, value: string): readonly Stored<T>[] {
    return this.#cache.byIndex(index, value);
  }

  addIndex(name: string, valuesOf: IndexFunction<T>): void {
    this.#cache.addIndex(name, (object) => {
      try {
        return valuesOf(object);
      } catch (error) {
        this.#env.logger.error(`index ${name} of ${this.#resource.plural} failed`, { error });
        return [];
      }
    });
  }

  hasSynced(): boolean {
    return this.#synced;
  }

  synced(signal: AbortSignal): Promise<void> {
    return abortable(this.#whenSynced, signal);
  }

  onChange(handler: InformerHandler<T>): () => void {
    // Registered after the loop, for later changes only: a notification in progress does not include this handler.
    for (const object of this.#cache.list()) this.#call(handler, { kind: "added", object, initial: true });
    this.#handlers.add(handler);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  listing(): void {
    this.#listsBegun++;
  }

  replace(items: readonly Stored<T>[]): void {
    const changes: Change<T>[] = [];
    const gone = new Set(this.#cache.keys());
    for (const item of items) {
      const key = keyOf(item);
      gone.delete(key);
      this.#store(key, item, changes, true);
    }
    for (const key of gone) {
      const object = this.#cache.delete(key);
      if (object !== undefined) changes.push({ kind: "deleted", object, tombstone: true });
    }
    this.#notify(changes);
    this.#synced = true;
    this.#lastListApplied = this.#listsBegun;
    this.#resolveSynced();
    this.moved(undefined);
  }

  moved(key: ObjectKey | undefined): void {
    for (const follower of this.#followers) follower(key);
  }

  apply(type: "ADDED" | "MODIFIED" | "DELETED", object: Stored<T>): void {
    const changes: Change<T>[] = [];
    if (type !== "DELETED") this.#store(keyOf(object), object, changes, false);
    else if (this.#cache.delete(keyOf(object)) !== undefined)
      changes.push({ kind: "deleted", object, tombstone: false });
    this.#notify(changes);
  }

  #progressOf(): CacheProgress {
    const informer = this;
    const { namespace, labelSelector, fieldSelector } = this.#options;
    const selectsSome = labelSelector !== undefined || fieldSelector !== undefined;
    return {
      get listsBegun() {
        return informer.#listsBegun;
      },
      get lastListApplied() {
        return informer.#lastListApplied;
      },
      hasSeen(version) {
        const { position } = informer.#reflector;
        if (position === undefined) return false;
        const order = compareResourceVersions(position, version);
        return order !== undefined && order >= 0;
      },
      selects: (key) =>
        (namespace === undefined || key.startsWith(`${namespace}/`)) &&
        (!selectsSome || this.#cache.get(key) !== undefined),
      onProgress: (follower) => {
        this.#followers.add(follower);
        return () => this.#followers.delete(follower);
      },
      refresh: () => this.#reflector.refresh(),
    };
  }

  #store(key: ObjectKey, object: Stored<T>, changes: Change<T>[], initial: boolean): void {
    const before = this.#cache.get(key);
    if (before !== undefined && before.metadata.uid === object.metadata.uid) {
      // A new list repeats what has not changed since: no event for that.
      if (before.metadata.resourceVersion === object.metadata.resourceVersion) return;
      this.#cache.set(key, object);
      changes.push({ kind: "updated", before, after: object });
      return;
    }
    this.#cache.set(key, object);
    if (before !== undefined) changes.push({ kind: "deleted", object: before, tombstone: true });
    changes.push({ kind: "added", object, initial });
  }

  #notify(changes: readonly Change<T>[]): void {
    if (changes.length === 0) return;
    if (this.#handlers.size === 0) return;
    const handlers = [...this.#handlers];
    for (const change of changes) {
      // A handler may unregister another one: that one gets no further call.
      for (const handler of handlers) if (this.#handlers.has(handler)) this.#call(handler, change);
    }
  }

  #call(handler: InformerHandler<T>, change: Change<T>): void {
    try {
      switch (change.kind) {
        case "added":
          handler.added?.(change.object, { initial: change.initial });
          return;
        case "updated":
          handler.updated?.(change.before, change.after);
          return;
        case "deleted":
          handler.deleted?.(change.object, { tombstone: change.tombstone });
      }
    } catch (error) {
      this.#env.logger.error(`a handler of ${this.#resource.plural} failed`, { error });
    }
  }

  async #resync(periodMs: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#env.clock.sleep(periodMs, signal);
      this.#notify(
        this.#cache.list().map((object) => ({ kind: "updated", before: object, after: object }) as const),
      );
    }
  }
}

/** Removes the managed fields: a third of a small object's size, and not used here. */
function withoutManagedFields<T extends KubeObject>(object: Stored<T>): Stored<T> {
  const { metadata } = object;
  if (metadata.managedFields === undefined) return object;
  const kept: Record<string, unknown> = {};
  // A rest pattern costs several times as much.
  for (const name in metadata)
    if (name !== "managedFields") kept[name] = metadata[name as keyof typeof metadata];
  return { ...object, metadata: kept as unknown as Stored<T>["metadata"] };
}
