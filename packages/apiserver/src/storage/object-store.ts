/** The store that both forms share: tables in memory, with or without something durable behind. */
import type { KubeObject, Stored } from "@longshore/kube";
import { own } from "../api/own.ts";
import { ResourceTable } from "./resource-table.ts";
import { type Change, type Commit, type ObjectTable, type Store, StoreError } from "./store.ts";

/** Makes commits durable, several at once. */
export interface Persistence {
  /** Resolves once all the commits are durable, all or none; called again only when it has settled. */
  persist(commits: readonly DurableCommit[]): Promise<void>;
  close(): Promise<void>;
}

/** One commit, on its way to the disk. */
export interface DurableCommit {
  readonly revision: number;
  readonly changes: readonly (Change & { readonly object?: Stored })[];
}

/** What was there when the store was opened. */
export interface StoredState {
  readonly revision: number;
  readonly objects: readonly (Change & { readonly object: Stored })[];
}

/** How much a store keeps. */
export interface StoreOptions {
  /** Changes of each resource that watches can go back to; default 4096. */
  readonly historyLimit?: number;
}

/** See {@link Store}. */
export class ObjectStore implements Store {
  readonly #tables = new Map<string, ResourceTable>();
  readonly #persistence: Persistence | undefined;
  readonly #historyLimit: number;
  readonly #loadedRevision: number;
  #revision: number;
  #readableRevision: number;
  /** Commits that are being made durable, and those that come after them. */
  #inFlight: Group | undefined;
  #waiting: Group | undefined;
  #closed = false;

  constructor(options: StoreOptions = {}, persistence?: Persistence, state?: StoredState) {
    this.#historyLimit = options.historyLimit ?? 4096;
    this.#persistence = persistence;
    this.#loadedRevision = this.#revision = this.#readableRevision = state?.revision ?? 0;
    for (const { resource, namespace, name, object } of state?.objects ?? []) {
      this.#table(resource).put(namespace, name, own(object));
    }
  }

  get revision(): number {
    return this.#revision;
  }

  get readableRevision(): number {
    return this.#readableRevision;
  }

  table(resource: string): ObjectTable {
    return this.#table(resource);
  }

  commit(changes: readonly Change[]): Commit {
    if (this.#closed) throw new StoreError("the store is closed");
    const revision = ++this.#revision;
    const stored = changes.map((change) => this.#apply(change, revision));
    if (this.#persistence === undefined) this.#release(changes, revision);
    else {
      this.#enqueue({
        revision,
        changes: changes.map((change, i) =>
          change.object === undefined
            ? { resource: change.resource, namespace: change.namespace, name: change.name }
            : { ...change, object: stored[i] as Stored },
        ),
      });
    }
    return { revision, objects: stored };
  }

  durable(): Promise<void> | undefined {
    return (this.#waiting ?? this.#inFlight)?.done;
  }

  compact(revision: number): void {
    for (const table of this.#tables.values()) table.compact(Math.min(revision, this.#revision));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.durable()?.catch(() => {});
    await this.#persistence?.close();
  }

  #table(resource: string): ResourceTable {
    let table = this.#tables.get(resource);
    if (table === undefined) {
      // Of a time before the store was opened nothing but its end is known.
      table = new ResourceTable(this.#historyLimit, this.#loadedRevision);
      this.#tables.set(resource, table);
    }
    return table;
  }

  #apply(change: Change, revision: number): Stored {
    const { namespace, name } = change;
    const table = this.#table(change.resource);
    const previous = table.get(namespace, name);
    if (change.object === undefined) {
      if (previous === undefined)
        throw new StoreError(`${change.resource} ${namespace}/${name} is not there`);
      const object = at(previous, revision);
      table.put(namespace, name, undefined);
      table.append({ revision, type: "DELETED", namespace, name, object, previous });
      return object;
    }
    const object = at(change.object, revision);
    table.put(namespace, name, object);
    const type = previous === undefined ? "ADDED" : "MODIFIED";
    table.append({ revision, type, namespace, name, object, previous });
    return object;
  }

  #release(changes: readonly Change[], revision: number): void {
    this.#readableRevision = revision;
    for (const { resource } of changes) this.#table(resource).release(revision);
  }

  #enqueue(commit: DurableCommit): void {
    this.#waiting ??= new Group();
    this.#waiting.commits.push(commit);
    if (this.#inFlight === undefined) void this.#drain();
  }

  /** Stores what is waiting as one group, and again what came to wait meanwhile. */
  async #drain(): Promise<void> {
    for (let group = this.#waiting; group !== undefined; group = this.#waiting) {
      this.#inFlight = group;
      this.#waiting = undefined;
      try {
        await this.#persistence?.persist(group.commits);
        for (const { changes, revision } of group.commits) this.#release(changes, revision);
        group.resolve();
      } catch (cause) {
        this.#rollBack(group, new StoreError("the change could not be stored", { cause }));
      }
    }
    this.#inFlight = undefined;
  }

  /** Takes back a group that was not stored, and with it all that was built on it. */
  #rollBack(failed: Group, error: StoreError): void {
    const later = this.#waiting as Group | undefined;
    this.#waiting = undefined;
    for (const { changes } of [...failed.commits, ...(later?.commits ?? [])].reverse()) {
      for (const { resource } of [...changes].reverse()) this.#table(resource).undo();
    }
    failed.reject(error);
    later?.reject(error);
  }
}

/** Commits that become durable together. */
class Group {
  readonly commits: DurableCommit[] = [];
  readonly done: Promise<void>;
  resolve: () => void = () => {};
  reject: (error: StoreError) => void = () => {};

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.done.catch(() => {}); // Someone who does not wait need not hear of it.
  }
}

function at(object: KubeObject, revision: number): Stored {
  const metadata = { ...object.metadata, resourceVersion: String(revision) };
  return own({ ...object, metadata }) as Stored;
}

/** A store that lives as long as its process: for tests, simulations and throw-away clusters. */
export function memoryStore(options: StoreOptions = {}): Store {
  return new ObjectStore(options);
}
