/** The kinds of a server, to be found by the names that requests and objects use. They come and go with CustomResourceDefinitions. */
import { type Kind, resourceKey } from "./kind.ts";

/** What has changed in a {@link KindTable}. A kind that was replaced is in both lists, in its old and its new form. */
export interface KindChange {
  readonly removed: readonly Kind[];
  readonly added: readonly Kind[];
}

/**
 * The kinds that are served, by group and plural name: the built-in ones, and those of CustomResourceDefinitions as they
 * come and go. Listeners run synchronously after each change; discovery and OpenAPI drop their cached documents in one.
 */
export class KindTable {
  readonly #byResource = new Map<string, Kind>();
  readonly #byKind = new Map<string, Kind>();
  readonly #listeners = new Set<(change: KindChange) => void>();

  constructor(kinds: readonly Kind[]) {
    for (const kind of kinds) this.#put(kind);
  }

  all(): readonly Kind[] {
    return [...this.#byResource.values()];
  }

  /** The kind of exactly that group and plural name: `deployments.apps` of the core group is none. */
  find(group: string, plural: string): Kind | undefined {
    const kind = this.#byResource.get(resourceKey({ group, plural }));
    return kind?.group === group ? kind : undefined;
  }

  findKind(group: string, kind: string): Kind | undefined {
    return this.#byKind.get(`${group}/${kind}`);
  }

  /** Serves the kind, in the place of one of the same group and plural name if there is one. */
  add(kind: Kind): void {
    const old = this.#byResource.get(resourceKey(kind));
    if (old !== undefined) this.#byKind.delete(`${old.group}/${old.kind}`);
    this.#put(kind);
    this.#notify({ removed: old === undefined ? [] : [old], added: [kind] });
  }

  /** Serves the kind of that group and plural name no longer. */
  remove(group: string, plural: string): void {
    const old = this.find(group, plural);
    if (old === undefined) return;
    this.#byResource.delete(resourceKey(old));
    this.#byKind.delete(`${old.group}/${old.kind}`);
    this.#notify({ removed: [old], added: [] });
  }

  /** Calls `listener` after each change of the kinds. Returns a function that unsubscribes. */
  onChange(listener: (change: KindChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #put(kind: Kind): void {
    this.#byResource.set(resourceKey(kind), kind);
    this.#byKind.set(`${kind.group}/${kind.kind}`, kind);
  }

  #notify(change: KindChange): void {
    for (const listener of [...this.#listeners]) listener(change);
  }
}

/** The kind as one version of it has it: the versions of a custom kind may differ in their rules and sub-resources. */
export function kindInVersion(kind: Kind, version: string): Kind {
  return kind.custom?.inVersion(version) ?? kind;
}
