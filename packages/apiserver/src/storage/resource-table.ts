/** The objects of one resource in key order, and the log of their latest changes. */
import type { Stored } from "@longshore/kube";
import { spendTime } from "../api/work-time.ts";
import { OrderedIndex } from "./ordered-index.ts";
import { keyOf, type LogEntry, type ObjectTable, type Page, type PageQuery } from "./store.ts";

/** How much a table remembers of the past. */
export interface HistoryLimits {
  /** Changes. */
  readonly changes: number;
  /** Memory of the objects that are only remembered, in bytes (about). */
  readonly bytes: number;
}

interface SizedEntry extends LogEntry {
  /** Memory that the entry keeps from being free, in bytes (about): that of the object which is no more. */
  readonly bytes: number;
}

/** See {@link ObjectTable}; the members beyond it are for the store that owns the table. */
export class ResourceTable implements ObjectTable {
  readonly #objects = new OrderedIndex<Stored>();
  readonly #log: SizedEntry[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #limits: HistoryLimits;
  /** Sum of the entries' bytes. */
  #bytes = 0;
  /** Place of the first entry still in the log. */
  #first = 0;
  /** Place after the last entry that may be read. */
  #readable = 0;
  /** The newest revision of which the log has forgotten a change. */
  #forgotten: number;
  /** Lists since the last change, by namespace; "" is the list of all. */
  readonly #lists = new Map<string, readonly Stored[]>();

  constructor(limits: HistoryLimits, forgotten: number) {
    this.#limits = limits;
    this.#forgotten = forgotten;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The newest revision of which the log has forgotten a change. */
  get forgotten(): number {
    return this.#forgotten;
  }

  get(namespace: string, name: string): Stored | undefined {
    return this.#objects.get(keyOf(namespace, name));
  }

  list(namespace = ""): readonly Stored[] {
    let list = this.#lists.get(namespace);
    if (list === undefined) {
      list = this.#page({ ...(namespace === "" ? {} : { namespace }) }, undefined).items;
      this.#lists.set(namespace, list);
    }
    return list;
  }

  snapshot(revision: number, namespace?: string): readonly Stored[] | undefined {
    return this.page({ revision, ...(namespace === undefined ? {} : { namespace }) })?.items;
  }

  page(query: PageQuery): Page | undefined {
    const { revision } = query;
    if (revision === undefined) return this.#page(query, undefined);
    if (revision < this.#forgotten) return undefined;
    return this.#page(query, this.#changedSince(revision));
  }

  /** What the objects that changed after `revision` were then; undefined when nothing changed. */
  #changedSince(revision: number): ReadonlyMap<string, Stored | undefined> | undefined {
    let changed: Map<string, Stored | undefined> | undefined;
    // From the newest back: of several changes of an object, what was before the first one stays in the map.
    for (let i = this.#log.length - 1; i >= 0; i--) {
      const { revision: at, namespace, name, previous } = this.#log[i] as LogEntry;
      if (at <= revision) break;
      spendTime();
      changed ??= new Map();
      changed.set(keyOf(namespace, name), previous);
    }
    return changed;
  }

  #page(query: PageQuery, changed: ReadonlyMap<string, Stored | undefined> | undefined): Page {
    const { namespace, after, selects } = query;
    // The smallest key after one is that key and the smallest character.
    const from = after !== undefined ? `${after}\0` : namespace === undefined ? "" : `${namespace}/`;
    const end = namespace === undefined ? undefined : `${namespace}0`; // "0" follows "/".
    const limit = query.limit === undefined || query.limit <= 0 ? Number.POSITIVE_INFINITY : query.limit;
    const gone = changed === undefined ? [] : this.#goneSince(changed, from, end);
    const items: Stored[] = [];
    let last = "";
    let next: string | undefined;
    let taken = 0;
    const take = (key: string, object: Stored | undefined): boolean => {
      spendTime();
      if (object === undefined || (selects !== undefined && !selects(object))) return true;
      if (items.length >= limit) {
        next = key;
        return false;
      }
      items.push(object);
      last = key;
      return true;
    };
    /** The objects that are no longer there stand between those that are. */
    const takeGone = (before: string | undefined): boolean => {
      for (; taken < gone.length; taken++) {
        const [key, object] = gone[taken] as readonly [string, Stored];
        if (before !== undefined && key > before) return true;
        if (!take(key, object)) return false;
      }
      return true;
    };
    this.#objects.scan(from, end, (key, object) => {
      if (changed === undefined) return take(key, object);
      return takeGone(key) && take(key, changed.has(key) ? changed.get(key) : object);
    });
    if (next === undefined) takeGone(undefined);
    if (next === undefined) return { items, remaining: 0 };
    return { items, last, remaining: this.#countFrom(`${last}\0`, end, changed) };
  }

  /** The objects of that time that are not there now, in key order. */
  #goneSince(
    changed: ReadonlyMap<string, Stored | undefined>,
    from: string,
    end: string | undefined,
  ): readonly (readonly [string, Stored])[] {
    const gone: [string, Stored][] = [];
    for (const [key, object] of changed) {
      if (object === undefined || key < from || (end !== undefined && key >= end)) continue;
      if (this.#objects.get(key) === undefined) gone.push([key, object]);
    }
    return gone.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #countFrom(
    from: string,
    end: string | undefined,
    changed: ReadonlyMap<string, Stored | undefined> | undefined,
  ): number {
    const until = end === undefined ? this.#objects.size : this.#objects.rank(end);
    let count = until - this.#objects.rank(from);
    for (const [key, object] of changed ?? []) {
      if (key < from || (end !== undefined && key >= end)) continue;
      const isThere = this.#objects.get(key) !== undefined;
      if (isThere && object === undefined) count--;
      if (!isThere && object !== undefined) count++;
    }
    return count;
  }

  /** The objects as they were before the log's first entry, with their keys, and the entries that may be read. */
  checkpoint(): {
    readonly keys: readonly string[];
    readonly objects: readonly Stored[];
    readonly history: readonly LogEntry[];
  } {
    const changed = this.#changedSince(-1);
    const keys: string[] = [];
    const objects: Stored[] = [];
    const add = (key: string, object: Stored | undefined) => {
      if (object === undefined) return;
      keys.push(key);
      objects.push(object);
    };
    for (const [key, object] of changed === undefined ? [] : this.#goneSince(changed, "", undefined)) {
      add(key, object);
    }
    this.#objects.scan("", undefined, (key, object) => {
      add(key, changed?.has(key) === true ? changed.get(key) : object);
      return true;
    });
    return { keys, objects, history: this.#log.slice(0, this.#readable - this.#first) };
  }

  positionAfter(revision: number): number | undefined {
    if (revision < this.#forgotten) return undefined;
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#log[middle] as LogEntry).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#first + low;
  }

  entry(position: number): LogEntry | "gone" | undefined {
    if (position < this.#first) return "gone";
    if (position >= this.#readable) return undefined;
    return this.#log[position - this.#first];
  }

  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Puts an object in place (or takes it away) without a log entry. */
  put(namespace: string, name: string, object: Stored | undefined): void {
    const key = keyOf(namespace, name);
    if (object === undefined) this.#objects.delete(key);
    else this.#objects.set(key, object);
    if (this.#lists.size > 0) this.#lists.clear();
  }

  /** Adds an entry that is not readable yet. */
  append(entry: LogEntry): void {
    const bytes = entry.previous === undefined ? 0 : roughBytes(entry.previous);
    this.#log.push({ ...entry, bytes });
    this.#bytes += bytes;
  }

  /** Takes the last entry back, and its change with it. */
  undo(): void {
    const entry = this.#log.pop();
    if (entry === undefined) return;
    this.#bytes -= entry.bytes;
    this.put(entry.namespace, entry.name, entry.previous);
  }

  /** Lets the entries up to `revision` be read, and forgets the oldest beyond the limit. */
  release(revision: number): void {
    const before = this.#readable;
    let at = this.#readable - this.#first;
    while (at < this.#log.length && (this.#log[at] as LogEntry).revision <= revision) at++;
    this.#readable = this.#first + at;
    // Cut in large pieces: taking single entries off the front would move the whole log each time.
    if (at > this.#limits.changes * 1.25) this.#forget(at - this.#limits.changes);
    // Well below the limit, so that not every change from then on forgets something.
    if (this.#bytes > this.#limits.bytes) this.#forgetBytes(this.#limits.bytes * 0.75);
    if (this.#readable > before) for (const listener of [...this.#listeners]) listener();
  }

  /** Forgets the history up to `revision`: versions before it are no longer known. */
  compact(revision: number): void {
    this.trim(revision);
    this.#forgotten = Math.max(this.#forgotten, revision);
  }

  /** Drops the entries up to `revision`, but for the last `keep`; where there were none, everything is known as before. */
  trim(revision: number, keep = 0): void {
    const max = this.#readable - this.#first - keep;
    let count = 0;
    while (count < max && (this.#log[count] as LogEntry).revision <= revision) count++;
    this.#forget(count);
  }

  #forgetBytes(most: number): void {
    let bytes = this.#bytes;
    let count = 0;
    // The last entry stays: watches still have to read what has just happened.
    while (bytes > most && this.#first + count < this.#readable - 1) {
      bytes -= (this.#log[count++] as SizedEntry).bytes;
    }
    this.#forget(count);
  }

  #forget(count: number): void {
    if (count <= 0) return;
    const gone = this.#log.splice(0, count);
    for (const { bytes } of gone) this.#bytes -= bytes;
    this.#first += count;
    this.#forgotten = Math.max(this.#forgotten, gone.at(-1)?.revision ?? 0);
  }
}

/** Memory of a JSON value, about: its texts, and some bytes for each of its parts. */
function roughBytes(value: unknown): number {
  if (typeof value === "string") return 16 + value.length;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 32;
  for (const key in value) bytes += 8 + roughBytes((value as Record<string, unknown>)[key]);
  return bytes;
}
