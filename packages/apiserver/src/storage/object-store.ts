/** The store that both forms share: tables in memory, with or without something durable behind. */

import type { KubeObject, Stored } from "@longshore/kube";
import { parseJson, toJson } from "../api/json.ts";
import { own, ownParsed } from "../api/own.ts";
import { commitWork } from "../api/work-time.ts";
import type {
  BaseContents,
  BaseRecord,
  DurableCommit,
  Persistence,
  StoredRecord,
  StoredState,
} from "./persistence.ts";
import { type HistoryLimits, ResourceTable } from "./resource-table.ts";
import { type RestoredObjects, restoredState } from "./restored-state.ts";
import {
  type Change,
  type Commit,
  type LogEntry,
  type ObjectTable,
  type Store,
  StoreError,
} from "./store.ts";

/** How much a store keeps. */
export interface StoreOptions {
  /** Changes of each resource that watches can go back to; default 10,000. */
  readonly historyLimit?: number;
  /** Memory that these changes of each resource may take, in bytes (about); default 32 MiB. */
  readonly historyBytesMax?: number;
  /** The time in milliseconds. With it, changes older than five minutes are forgotten, except for the latest few. */
  readonly now?: () => number;
}

/** See {@link Store}. */
export class ObjectStore implements Store {
  readonly #tables = new Map<string, ResourceTable>();
  readonly #persistence: Persistence | undefined;
  readonly #historyLimits: HistoryLimits;
  readonly #age: HistoryAge | undefined;
  /** Revision up to which the history of all resources was compacted. */
  #compacted: number;
  #revision: number;
  #readableRevision: number;
  /** Commits that are being made durable, and those that come after them. */
  #inFlight: Group | undefined;
  #waiting: Group | undefined;
  #closed = false;

  constructor(options: StoreOptions = {}, persistence?: Persistence, state?: StoredState) {
    this.#historyLimits = {
      changes: options.historyLimit ?? 10_000,
      bytes: options.historyBytesMax ?? 32 * 1024 * 1024,
    };
    this.#age = options.now === undefined ? undefined : new HistoryAge(options.now);
    this.#persistence = persistence;
    this.#revision = this.#readableRevision = state?.revision ?? 0;
    this.#compacted = state?.forgotten[""] ?? 0;
    if (state !== undefined) this.#load(state);
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
    commitWork();
    const revision = ++this.#revision;
    const old = this.#age?.oldRevision(revision);
    if (old !== undefined) for (const table of this.#tables.values()) table.trim(old, historyMin);
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
    this.#compacted = Math.max(this.#compacted, Math.min(revision, this.#revision));
    for (const table of this.#tables.values()) table.compact(this.#compacted);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.durable()?.catch(() => {});
    await this.#persistence?.close();
  }

  #table(resource: string): ResourceTable {
    let table = this.#tables.get(resource);
    if (table === undefined) {
      table = new ResourceTable(this.#historyLimits, this.#compacted);
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

  #load({ base, changes, forgotten }: StoredState): void {
    for (const { resource, namespace, name, json } of base) {
      this.#table(resource).put(namespace, name, parse(json));
    }
    for (const [resource, revision] of Object.entries(forgotten)) {
      if (resource !== "") this.#table(resource).compact(revision);
    }
    for (const { revision, resource, namespace, name, json } of changes) {
      const table = this.#table(resource);
      const previous = table.get(namespace, name);
      const object = parse(json) ?? (previous && at(previous, revision));
      if (object === undefined) continue;
      table.put(namespace, name, json === undefined ? undefined : object);
      const type = json === undefined ? "DELETED" : previous === undefined ? "ADDED" : "MODIFIED";
      table.append({ revision, type, namespace, name, object, previous });
      table.release(revision);
    }
  }

  /** Everything durable, as it is now: the objects before the changes that are remembered, and the changes. */
  checkpoint(): BaseContents {
    const forgotten: Record<string, number> = { "": this.#compacted };
    const tables: TableAt[] = [];
    const changes: (LogEntry & { readonly resource: string })[] = [];
    for (const [resource, table] of this.#tables) {
      if (table.forgotten > this.#compacted) forgotten[resource] = table.forgotten;
      const { history, ...objects } = table.checkpoint();
      tables.push({ resource, ...objects });
      for (const entry of history) changes.push({ ...entry, resource });
    }
    // One order for all tables, that of the commits; a stable sort, so the changes of one commit keep theirs.
    changes.sort((a, b) => a.revision - b.revision);
    return {
      // Not `#revision`: what is in flight goes into the log that begins after this base.
      revision: this.#readableRevision,
      forgotten,
      base: baseRecords(tables),
      changes: changeRecords(changes),
    };
  }

  #release(changes: readonly Change[], revision: number): void {
    this.#readableRevision = revision;
    // Readers are woken once, however many changes there are for them.
    for (const resource of new Set(changes.map((change) => change.resource))) {
      this.#table(resource).release(revision);
    }
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
        await this.#persistence?.persist(group.commits, () => this.checkpoint());
        const changes = group.commits.flatMap((commit) => commit.changes);
        this.#release(changes, group.commits.at(-1)?.revision ?? 0);
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
    // The newest first, since `undo` takes the last entry of a table's log.
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
    this.done.catch(() => {}); // Avoids an unhandled rejection when no caller waits.
  }
}

/** Changes of a resource that are remembered whatever their age. */
const historyMin = 512;

/** Which changes are old. */
class HistoryAge {
  readonly #now: () => number;
  /** What was the last revision when; one a minute. */
  readonly #marks: { readonly at: number; readonly revision: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The last revision that is more than five minutes old, when a minute has gone by since the last answer. */
  oldRevision(revision: number): number | undefined {
    const now = this.#now();
    if (now - (this.#marks.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < 60_000) return undefined;
    this.#marks.push({ at: now, revision });
    let old: number | undefined;
    while (this.#marks[0] !== undefined && now - this.#marks[0].at >= 5 * 60_000) {
      old = this.#marks.shift()?.revision;
    }
    return old;
  }
}

/** The objects of a table as they were. */
interface TableAt {
  readonly resource: string;
  readonly keys: readonly string[];
  readonly objects: readonly Stored[];
}

/** Made one by one, while requests are answered in between. */
function* baseRecords(tables: readonly TableAt[]): Generator<BaseRecord> {
  for (const { resource, keys, objects } of tables) {
    for (const [i, key] of keys.entries()) {
      const slash = key.indexOf("/");
      const identity = { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
      yield { revision: 0, resource, ...identity, json: () => toJson(objects[i]) };
    }
  }
}

function* changeRecords(
  changes: readonly (LogEntry & { readonly resource: string })[],
): Generator<BaseRecord> {
  for (const { revision, resource, namespace, name, type, object } of changes) {
    const json = type === "DELETED" ? undefined : () => toJson(object);
    yield { revision, resource, namespace, name, json };
  }
}

function parse(json: Buffer | undefined): Stored | undefined {
  return json === undefined ? undefined : ownParsed(parseJson(json.toString()) as Stored);
}

function at(object: KubeObject, revision: number): Stored {
  const metadata = { ...object.metadata, resourceVersion: String(revision) };
  return own({ ...object, metadata }) as Stored;
}

/** A store in memory only, for tests, simulations and temporary clusters. */
export interface MemoryStore extends Store {
  /** Everything as it is now. */
  backUp(): MemoryBackup;
}

/** What {@link MemoryStore} was at one moment. */
export type MemoryBackup = Pick<StoredState, "revision" | "base" | "changes">;

class ObjectsInMemory extends ObjectStore implements MemoryStore {
  backUp(): MemoryBackup {
    const { revision, base, changes } = this.checkpoint();
    return { revision, base: [...base].map(recorded), changes: [...changes].map(recorded) };
  }
}

function recorded({ json, ...record }: BaseRecord): StoredRecord {
  return json === undefined ? record : { ...record, json: Buffer.from(json()) };
}

/** Makes a store in memory, empty. */
export function memoryStore(options: StoreOptions = {}): MemoryStore {
  return new ObjectsInMemory(options);
}

/**
 * Makes a store in memory from a backup, as `restoreStore` does of files.
 * @param now the time, from which the versions go on: in milliseconds since 1970
 * @param options `restoredObjects`: what does not hold any more is taken out of them
 */
export function restoredMemoryStore(
  backup: MemoryBackup,
  now: Date,
  { restoredObjects, ...options }: StoreOptions & { readonly restoredObjects?: RestoredObjects } = {},
): MemoryStore {
  return new ObjectsInMemory(options, undefined, restoredState(backup, now, restoredObjects));
}
