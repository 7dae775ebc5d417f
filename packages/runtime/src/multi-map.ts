/**
 * A map with any number of values for each key, in the order in which they were added. Most keys of the caches have one
 * value: it is held without a collection around it, which takes a third of the memory and of the time.
 */
export class MultiMap<K, V extends object | string | number> {
  readonly #values = new Map<K, V | Several<V>>();

  /** Number of keys. */
  get size(): number {
    return this.#values.size;
  }

  has(key: K): boolean {
    return this.#values.has(key);
  }

  /** Adds a value to the key's; a value that is there stays where it is. */
  add(key: K, value: V): void {
    const held = this.#values.get(key);
    if (held === undefined) this.#values.set(key, value);
    else if (held instanceof Several) held.add(value);
    else if (held !== value) this.#values.set(key, new Several([held, value]));
  }

  /** Takes a value from the key's; nothing happens when it is not there. */
  delete(key: K, value: V): void {
    const held = this.#values.get(key);
    if (held === value) this.#values.delete(key);
    else if (held instanceof Several && held.delete(value) && held.size === 0) this.#values.delete(key);
  }

  /** The key's values, as they are now. */
  get(key: K): readonly V[] {
    const held = this.#values.get(key);
    if (held === undefined) return none;
    return held instanceof Several ? [...held] : [held];
  }
}

/** Two values or more, or what is left of them. */
class Several<V> extends Set<V> {}

const none: readonly never[] = Object.freeze([]);
