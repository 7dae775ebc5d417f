/**
 * The objects that an informer knows, by key and by index. Knows nothing of the server.
 *
 * Invariant: an object is in an index under exactly the values that the index function returned for it
 * when it was stored, so removing it always finds it again.
 */
import { MultiMap } from "@longshore/runtime/basics";
import type { KubeObject, ObjectKey, Stored } from "../kube-objects.ts";

/** Returns the values under which an object is found in an index. */
export type IndexFunction<T extends KubeObject> = (object: Stored<T>) => readonly string[];

interface Index<T extends KubeObject> {
  readonly valuesOf: IndexFunction<T>;
  readonly byValue: MultiMap<string, Stored<T>>;
  readonly valuesByKey: Map<ObjectKey, readonly string[]>;
}

const none: readonly never[] = [];

/** A map of objects with secondary indexes. */
export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<ObjectKey, Stored<T>>();
  readonly #indexes = new Map<string, Index<T>>();
  /** The last result of `list`, until something changes. */
  #listed: readonly Stored<T>[] | undefined;

  get(key: ObjectKey): Stored<T> | undefined {
    return this.#objects.get(key);
  }

  keys(): readonly ObjectKey[] {
    return [...this.#objects.keys()];
  }

  list(): readonly Stored<T>[] {
    this.#listed ??= [...this.#objects.values()];
    return this.#listed;
  }

  /** Objects with `value` in the index; an index that was never added is a mistake of the caller. */
  byIndex(name: string, value: string): readonly Stored<T>[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`informer has no index "${name}": name it in its options`);
    return index.byValue.get(value);
  }

  /** Adds an index over what is there and what will come; a name that is taken is left as it is. */
  addIndex(name: string, valuesOf: IndexFunction<T>): void {
    if (this.#indexes.has(name)) return;
    const index: Index<T> = { valuesOf, byValue: new MultiMap(), valuesByKey: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) enter(index, key, object);
  }

  /** Stores the object under its key and returns the one it replaces. */
  set(key: ObjectKey, object: Stored<T>): Stored<T> | undefined {
    const before = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) {
      if (before !== undefined) leave(index, key, before);
      enter(index, key, object);
    }
    this.#listed = undefined;
    return before;
  }

  /** Removes the object and returns it. */
  delete(key: ObjectKey): Stored<T> | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) leave(index, key, before);
    this.#listed = undefined;
    return before;
  }
}

function enter<T extends KubeObject>(index: Index<T>, key: ObjectKey, object: Stored<T>): void {
  const values = index.valuesOf(object);
  if (values.length === 0) return;
  index.valuesByKey.set(key, values);
  for (const value of values) index.byValue.add(value, object);
}

function leave<T extends KubeObject>(index: Index<T>, key: ObjectKey, before: Stored<T>): void {
  for (const value of index.valuesByKey.get(key) ?? none) index.byValue.delete(value, before);
  index.valuesByKey.delete(key);
}
