/**
 * Follows one table for an index that is brought up to date when it is asked, and at no other time: catching up
 * costs the changes since, and nothing where there are none.
 */
import type { Stored } from "@longshore/kube";
import { uninterrupted } from "../api/work-time.ts";
import { keyOf, type ObjectTable, type Store } from "./store.ts";

/** Called for each object with its new and its previous state; undefined where it does not, or did not, exist. */
export type OnObject = (key: string, object: Stored | undefined, previous: Stored | undefined) => void;

/** Reports the changes of one table since the last call. */
export class FollowedTable {
  readonly #store: Store;
  readonly #table: ObjectTable;
  readonly #onObject: OnObject;
  /** The last reported state of the objects, by key. */
  readonly #known = new Map<string, Stored>();
  #position: number | undefined;

  constructor(store: Store, resource: string, onObject: OnObject) {
    this.#store = store;
    this.#table = store.table(resource);
    this.#onObject = onObject;
  }

  /** Reports everything that has changed since the last call. */
  catchUp(): void {
    if (this.#position !== undefined && this.#table.entry(this.#position) === undefined) return;
    // Other requests read what is made of it: one that runs out of time leaves nothing out.
    uninterrupted(() => this.#readOn());
  }

  #readOn(): void {
    if (this.#position === undefined) {
      this.#reportAll();
      return;
    }
    for (;;) {
      const entry = this.#table.entry(this.#position);
      if (entry === undefined) return;
      if (entry === "gone") {
        this.#reportAll();
        return;
      }
      this.#position++;
      const key = keyOf(entry.namespace, entry.name);
      this.#report(key, entry.type === "DELETED" ? undefined : entry.object);
    }
  }

  #reportAll(): void {
    this.#position = this.#table.positionAfter(this.#store.readableRevision) ?? 0;
    const there = new Set<string>();
    for (const object of this.#table.list()) {
      const key = keyOf(object.metadata.namespace ?? "", object.metadata.name);
      there.add(key);
      this.#report(key, object);
    }
    for (const key of [...this.#known.keys()]) if (!there.has(key)) this.#report(key, undefined);
  }

  #report(key: string, object: Stored | undefined): void {
    const previous = this.#known.get(key);
    if (previous === object) return;
    if (object === undefined) this.#known.delete(key);
    else this.#known.set(key, object);
    this.#onObject(key, object, previous);
  }
}
