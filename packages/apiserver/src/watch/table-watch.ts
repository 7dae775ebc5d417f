/**
 * A watch over one table: a place in the table's log, and nothing else. It buffers nothing, so any
 * number of slow readers costs nothing; one that falls behind the log's memory gets 410.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { WatchItem, WatchStream } from "../api/api-request.ts";
import { expired } from "../api/errors.ts";
import { own } from "../api/own.ts";
import type { LogEntry, ObjectTable, Store } from "../storage/store.ts";

/** What is watched. */
export interface TableWatchOptions {
  readonly store: Store;
  readonly table: ObjectTable;
  /** First place in the log to be read. */
  readonly position: number;
  /** The existing objects are sent as ADDED first; not sent when left out. */
  readonly initial: InitialState | undefined;
  readonly selects: (object: Stored) => boolean;
  /** The revision that the watch has seen when it begins. */
  readonly revision: number;
}

/** What is sent before the changes. */
export interface InitialState {
  readonly namespace: string | undefined;
  /** Whether a bookmark marks the end of the initial state. */
  readonly marksEnd: boolean;
}

interface InitialReading extends InitialState {
  objects: Stored[];
  after: string | undefined;
  isLast: boolean;
}

/** Objects of the initial state that are looked up at once. */
const initialPage = 200;

/** See {@link WatchStream}. */
export class TableWatch implements WatchStream {
  readonly #store: Store;
  readonly #table: ObjectTable;
  readonly #selects: (object: Stored) => boolean;
  /** The part of the initial state that is still to be sent: some objects in reverse order, and where to read more. */
  #initial: InitialReading | undefined;
  #position: number;
  #revision: number;
  #bookmarkDue = false;
  #ended = false;
  /** The reader has received the reason why the watch ends. */
  #failed = false;
  #waiter: ((item: WatchItem | undefined) => void) | undefined;
  readonly #unsubscribe: () => void;
  /** Called once when the watch ends. */
  onEnd: () => void = () => {};
  onLost: () => void = () => {};

  constructor(options: TableWatchOptions) {
    this.#store = options.store;
    this.#table = options.table;
    this.#selects = options.selects;
    this.#initial = options.initial && { ...options.initial, objects: [], after: undefined, isLast: false };
    this.#position = options.position;
    this.#revision = options.revision;
    this.#unsubscribe = this.#table.onAppend(() => this.#wake());
  }

  take(): WatchItem | "ended" | undefined {
    if (this.#initial !== undefined && !this.#failed) {
      const item = this.#takeInitial(this.#initial);
      if (item !== undefined) return item;
    }
    while (!this.#failed) {
      const entry = this.#table.entry(this.#position);
      if (entry === undefined) break;
      if (entry === "gone") return this.#fail();
      this.#position++;
      // A watch of a version that is still to come waits for it.
      if (entry.revision <= this.#revision) continue;
      this.#revision = entry.revision;
      const item = this.#itemOf(entry);
      if (item !== undefined) return item;
    }
    if (this.#bookmarkDue && !this.#failed) {
      this.#bookmarkDue = false;
      this.#revision = Math.max(this.#revision, this.#store.readableRevision);
      return { type: "BOOKMARK", resourceVersion: String(this.#revision) };
    }
    return this.#ended || this.#failed ? "ended" : undefined;
  }

  next(): Promise<WatchItem | undefined> {
    const item = this.take();
    if (item === "ended") return Promise.resolve(undefined);
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  /** Lets the reader know how far the watch is, as soon as it has read everything before. */
  bookmark(): void {
    this.#bookmarkDue = true;
    this.#wake();
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsubscribe();
    this.onEnd();
    this.#wake();
  }

  /** The state is read in pages: a slow reader of it holds a page, and not the state. */
  #takeInitial(initial: InitialReading): WatchItem | undefined {
    if (initial.objects.length === 0 && !initial.isLast) {
      const page = this.#table.page({
        revision: this.#revision,
        limit: initialPage,
        selects: this.#selects,
        ...(initial.namespace === undefined ? {} : { namespace: initial.namespace }),
        ...(initial.after === undefined ? {} : { after: initial.after }),
      });
      if (page === undefined) return this.#fail();
      // Taken from the end with `pop`, which moves nothing.
      initial.objects = [...page.items].reverse();
      initial.after = page.last;
      initial.isLast = page.last === undefined;
    }
    const object = initial.objects.pop();
    if (object !== undefined) return { type: "ADDED", object };
    this.#initial = undefined;
    if (!initial.marksEnd) return undefined;
    return { type: "BOOKMARK", resourceVersion: String(this.#revision), initialEventsEnd: true };
  }

  #wake(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) {
      if (!this.#ended && this.#table.entry(this.#position) === "gone") this.onLost();
      return;
    }
    const item = this.take();
    if (item === undefined) return;
    this.#waiter = undefined;
    waiter(item === "ended" ? undefined : item);
  }

  #fail(): WatchItem {
    this.#failed = true;
    this.close();
    const error = expired(`too old resource version: ${this.#revision} (${this.#store.revision})`);
    return { type: "ERROR", status: error.status as KubeObject };
  }

  /** What an entry means to this reader: an object can come into the selection and leave it. */
  #itemOf(entry: LogEntry): WatchItem | undefined {
    const before = entry.previous !== undefined && this.#selects(entry.previous);
    if (entry.type === "DELETED") return before ? { type: "DELETED", object: entry.object } : undefined;
    const now = this.#selects(entry.object);
    if (now) return { type: before ? "MODIFIED" : "ADDED", object: entry.object };
    if (!before || entry.previous === undefined) return undefined;
    // It has left the selection: its last selected state, at the version of the change (apiserver, storage/cacher).
    const metadata = { ...entry.previous.metadata, resourceVersion: String(entry.revision) };
    return { type: "DELETED", object: own({ ...entry.previous, metadata }) };
  }
}
