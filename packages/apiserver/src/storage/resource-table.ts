/** The objects of one resource in key order, and the log of their latest changes. */
import type { Stored } from "@longshore/kube";
import type { LogEntry, ObjectTable } from "./store.ts";

interface Bucket {
  readonly objects: Map<string, Stored>;
  /** The objects in the order of their names; made when first asked for after a change. */
  sorted: readonly Stored[] | undefined;
}

/** Order of keys in the store: a namespace ends with a slash, so `a-b/x` comes before `a/x`. */
function byKey(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** See {@link ObjectTable}; the members beyond it are for the store that owns the table. */
export class ResourceTable implements ObjectTable {
  readonly #buckets = new Map<string, Bucket>();
  readonly #log: LogEntry[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #historyLimit: number;
  /** Place of the first entry still in the log. */
  #first = 0;
  /** Place after the last entry that may be read. */
  #readable = 0;
  /** The newest revision of which the log has forgotten a change. */
  #forgotten: number;
  #all: readonly Stored[] | undefined;

  constructor(historyLimit: number, forgotten: number) {
    this.#historyLimit = historyLimit;
    this.#forgotten = forgotten;
  }

  get(namespace: string, name: string): Stored | undefined {
    return this.#buckets.get(namespace)?.objects.get(name);
  }

  list(namespace?: string): readonly Stored[] {
    if (namespace !== undefined) return sortedOf(this.#buckets.get(namespace));
    if (this.#all === undefined) {
      const namespaces = [...this.#buckets.keys()].sort((a, b) => byKey(`${a}/`, `${b}/`));
      this.#all = namespaces.flatMap((ns) => sortedOf(this.#buckets.get(ns)));
    }
    return this.#all;
  }

  snapshot(revision: number, namespace?: string): readonly Stored[] | undefined {
    if (revision < this.#forgotten) return undefined;
    const now = this.list(namespace);
    const end = this.#log.length;
    let at = end;
    while (at > 0 && (this.#log[at - 1] as LogEntry).revision > revision) at--;
    if (at === end) return now;
    const objects = new Map(now.map((o) => [`${o.metadata.namespace ?? ""}/${o.metadata.name}`, o]));
    for (let i = end - 1; i >= at; i--) {
      const entry = this.#log[i] as LogEntry;
      if (namespace !== undefined && entry.namespace !== namespace) continue;
      const key = `${entry.namespace}/${entry.name}`;
      if (entry.previous === undefined) objects.delete(key);
      else objects.set(key, entry.previous);
    }
    return [...objects].sort((a, b) => byKey(a[0], b[0])).map(([, object]) => object);
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
    let bucket = this.#buckets.get(namespace);
    if (bucket === undefined) {
      bucket = { objects: new Map(), sorted: undefined };
      this.#buckets.set(namespace, bucket);
    }
    if (object === undefined) bucket.objects.delete(name);
    else bucket.objects.set(name, object);
    bucket.sorted = undefined;
    this.#all = undefined;
    if (bucket.objects.size === 0) this.#buckets.delete(namespace);
  }

  /** Adds an entry that nobody may read yet. */
  append(entry: LogEntry): void {
    this.#log.push(entry);
  }

  /** Takes the last entry back, and its change with it. */
  undo(): void {
    const entry = this.#log.pop();
    if (entry !== undefined) this.put(entry.namespace, entry.name, entry.previous);
  }

  /** Lets the entries up to `revision` be read, and forgets the oldest beyond the limit. */
  release(revision: number): void {
    const before = this.#readable;
    let at = this.#readable - this.#first;
    while (at < this.#log.length && (this.#log[at] as LogEntry).revision <= revision) at++;
    this.#readable = this.#first + at;
    // Cut in large pieces: taking single entries off the front would move the whole log each time.
    if (at > this.#historyLimit * 1.25) this.#forget(at - this.#historyLimit);
    if (this.#readable > before) for (const listener of [...this.#listeners]) listener();
  }

  /** Forgets the history up to `revision`. */
  compact(revision: number): void {
    let count = 0;
    while (this.#first + count < this.#readable && (this.#log[count] as LogEntry).revision <= revision) {
      count++;
    }
    this.#forget(count);
    this.#forgotten = Math.max(this.#forgotten, revision);
  }

  #forget(count: number): void {
    const gone = this.#log.splice(0, count);
    this.#first += count;
    this.#forgotten = Math.max(this.#forgotten, gone.at(-1)?.revision ?? 0);
  }
}

function sortedOf(bucket: Bucket | undefined): readonly Stored[] {
  if (bucket === undefined) return [];
  bucket.sorted ??= [...bucket.objects.values()].sort((a, b) => byKey(a.metadata.name, b.metadata.name));
  return bucket.sorted;
}
