/** The kinds of a server, to be found by the names that requests and objects use. */
import { type Kind, resourceKey } from "./kind.ts";

/** The kinds that are served, by group and plural name. */
export class KindTable {
  readonly #byResource = new Map<string, Kind>();
  readonly #byKind = new Map<string, Kind>();
  readonly #listeners = new Set<() => void>();

  constructor(kinds: readonly Kind[]) {
    for (const kind of kinds) {
      this.#byResource.set(resourceKey(kind), kind);
      this.#byKind.set(`${kind.group}/${kind.kind}`, kind);
    }
  }

  all(): readonly Kind[] {
    return [...this.#byResource.values()];
  }

  find(group: string, plural: string): Kind | undefined {
    return this.#byResource.get(group === "" ? plural : `${plural}.${group}`);
  }

  findKind(group: string, kind: string): Kind | undefined {
    return this.#byKind.get(`${group}/${kind}`);
  }

  /** Calls `listener` after each change of the kinds; gives the function that ends this. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
