import { toSortedJson } from "./json.ts";

/**
 * A map whose keys are JSON values: two that are the same value are one key. Finding one costs no more than the value
 * is long, however many there are.
 */
export class ByJson<V> {
  readonly #scalars = new Map<unknown, V>();
  /** Lists and objects, by a text that is the same for the same value. */
  readonly #others = new Map<string, V>();

  get(key: unknown): V | undefined {
    return isScalar(key) ? this.#scalars.get(key) : this.#others.get(toSortedJson(key));
  }

  has(key: unknown): boolean {
    return isScalar(key) ? this.#scalars.has(key) : this.#others.has(toSortedJson(key));
  }

  set(key: unknown, value: V): void {
    if (isScalar(key)) this.#scalars.set(key, value);
    else this.#others.set(toSortedJson(key), value);
  }

  /** What the key has; what is made for it where it has nothing. */
  getOr(key: unknown, make: () => V): V {
    const known = this.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.set(key, made);
    return made;
  }
}

const isScalar = (value: unknown) => typeof value !== "object" || value === null;
