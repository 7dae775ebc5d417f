/** What wakes a controller: changes in caches, and anything else that names keys. */
import type { Informer } from "../informer/informer.ts";
import { type KubeObject, keyOf, type Stored } from "../kube-objects.ts";
import type { Priority } from "../queue/waiting-keys.ts";

/** Wakes a key; in the background what no event asks for. */
export type Wake = (key: string, priority?: Priority) => void;

/** What a source does to the queue of its controller. */
export interface SourceQueue {
  /** Makes a key run, soon. */
  readonly wake: Wake;
  /** Forgets the failures and the retry of a key. */
  forget(key: string): void;
}

/**
 * Something that wakes keys. The controller subscribes once, after its caches have synced, and unsubscribes when it stops.
 * A source wakes what is there already as well, since what happened before is not reported otherwise. It may wake a key too
 * often, never too rarely.
 */
export interface Source {
  /** The caches it follows: the first pass begins once they have synced. */
  readonly caches: readonly SyncedCache[];
  /** Begins to wake keys. @returns a function that unsubscribes */
  subscribe(queue: SourceQueue): () => void;
  /** Wakes all its keys in the background; only sources of the controller's own objects do. */
  resync?(wake: Wake): void;
}

/** A cache as far as a controller waits for it. */
export interface SyncedCache {
  /** Resolves once the first list is in the cache; rejects with the signal's reason. */
  synced(signal: AbortSignal): Promise<void>;
}

/** Which changes of objects wake which keys. */
export interface WatchOptions<T extends KubeObject> {
  /** Whether an update matters; all do when left out. Never asked in a resync, which matters always. */
  readonly changed?: (before: Stored<T>, after: Stored<T>) => boolean;
  /** The keys that a deletion wakes; default those of the object as it was last. */
  readonly deleted?: (lastKnown: Stored<T>) => Iterable<string>;
}

/** Which of the controller's own objects wake which keys. */
export interface ResourceOptions<T extends KubeObject> extends Omit<WatchOptions<T>, "deleted"> {
  /** Keys of an object; default its own, `namespace/name` or `name`. */
  readonly keys?: (object: Stored<T>) => Iterable<string>;
  /** Which objects concern the controller; an update is asked about the state after it. All do when left out. */
  readonly selects?: (object: Stored<T>) => boolean;
  /**
   * The keys that a deletion wakes; default those of the object. `forget`: none, and the failures of its keys are
   * forgotten.
   */
  readonly deleted?: "forget" | ((lastKnown: Stored<T>) => Iterable<string>);
}

/** The controller's own objects: they are also looked at again at each resync. */
export function forResource<T extends KubeObject>(
  informer: Informer<T>,
  options: ResourceOptions<T> = {},
): Source {
  const {
    keys = (object) => [keyOf(object)],
    selects = () => true,
    changed = () => true,
    deleted = keys,
  } = options;
  return {
    caches: [informer],
    subscribe({ wake, forget }) {
      const wakeAll = (object: Stored<T>, priority: Priority) => {
        for (const key of keys(object)) wake(key, priority);
      };
      return informer.onChange({
        added(object, { initial }) {
          if (selects(object)) wakeAll(object, initial ? "background" : "fresh");
        },
        updated(before, after) {
          if (!selects(after)) return;
          if (before === after) wakeAll(after, "background");
          else if (changed(before, after)) wakeAll(after, "fresh");
        },
        deleted(lastKnown) {
          if (deleted === "forget") for (const key of keys(lastKnown)) forget(key);
          else if (selects(lastKnown)) for (const key of deleted(lastKnown)) wake(key);
        },
      });
    },
    resync(wake) {
      for (const object of informer.list()) {
        if (selects(object)) for (const key of keys(object)) wake(key, "background");
      }
    },
  };
}

/** Other objects, whose changes wake the keys that `keysOf` names: for an update those before and after it. */
export function watches<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: Stored<T>) => Iterable<string>,
  options: WatchOptions<T> = {},
): Source {
  const { changed = () => true, deleted = keysOf } = options;
  return {
    caches: [informer],
    subscribe: ({ wake }) =>
      informer.onChange({
        added(object, { initial }) {
          for (const key of keysOf(object)) wake(key, initial ? "background" : "fresh");
        },
        updated(before, after) {
          if (before !== after && !changed(before, after)) return;
          const priority = before === after ? "background" : "fresh";
          for (const key of new Set([...keysOf(before), ...keysOf(after)])) wake(key, priority);
        },
        deleted(lastKnown) {
          for (const key of deleted(lastKnown)) wake(key);
        },
      }),
  };
}

/** Objects that the controller made: a change wakes the owner of this kind that controls them. */
export function owns<T extends KubeObject>(informer: Informer<T>, ownerKind: string): Source {
  return watches(informer, ({ metadata: { namespace, ownerReferences = [] } }) =>
    ownerReferences
      .filter(({ kind, controller }) => controller === true && kind === ownerKind)
      .map(({ name }) => (namespace === undefined ? name : `${namespace}/${name}`)),
  );
}

/** Anything else that wakes keys. @param subscribe returns a function that unsubscribes */
export function source(subscribe: (wake: Wake) => () => void): Source {
  return { caches: [], subscribe: ({ wake }) => subscribe(wake) };
}
