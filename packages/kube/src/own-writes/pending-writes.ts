/**
 * What was written to the objects of one cache and has not been seen there yet.
 *
 * A write has been seen once the cache followed the server past its version, once it holds the very object, or once
 * it was filled by a list that began after the write had ended; the last also holds on a server that was restored
 * from a backup and counts from an older version. A deletion has no version: it has been seen once the cache holds
 * the object no more, or as deleting.
 */
import type { CacheProgress } from "../informer/cache-progress.ts";
import { compareResourceVersions } from "../informer/compare-resource-versions.ts";
import { isDeleting, type KubeObject, type ObjectKey, type Stored } from "../kube-objects.ts";

/** The last write to one object. */
export interface OwnWrite {
  /** Version that the answer carried; undefined when it carried none. */
  readonly version: string | undefined;
  readonly uid: string | undefined;
  /** What the write did to the existence of the object with this UID. */
  readonly deletion: "none" | "deleting" | "gone";
}

interface Pending extends OwnWrite {
  /** Counts the writes to this cache. */
  readonly number: number;
  /** Lists that had begun when the write ended. */
  readonly listsBegun: number;
}

/** A callback that waits until all writes up to a number have been seen. */
interface Waiter {
  readonly upTo: number;
  readonly onSeen: () => void;
}

/** What waiting for a cache needs of the cache. */
export interface FollowedCache {
  get(key: ObjectKey): Stored<KubeObject> | undefined;
  readonly progress: CacheProgress;
}

/** The record of one cache. Memory is bounded by the objects written and not yet seen. */
export class PendingWrites {
  readonly #cache: FollowedCache;
  /** In the order of their numbers. */
  readonly #pending = new Map<ObjectKey, Pending>();
  /** In the order of what they wait for. */
  readonly #waiting = new Set<Waiter>();
  /** Those that wait for one object alone. */
  readonly #waitingForOne = new Map<ObjectKey, Set<() => void>>();
  #written = 0;

  constructor(cache: FollowedCache) {
    this.#cache = cache;
    cache.progress.onProgress((key) => this.#onProgress(key));
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Takes down a write that has ended. */
  add(key: ObjectKey, write: OwnWrite): void {
    const before = this.#pending.get(key);
    // Member by member: a spread costs more than all else here.
    const pending: Pending = {
      deletion: write.deletion,
      // Who waits for the earlier write to the object goes on waiting: the record of it is this one.
      number: before?.number ?? ++this.#written,
      uid: write.uid ?? before?.uid,
      // Two writes to one object may end in the other order.
      version: newest(before?.version, write.version),
      listsBegun: this.#cache.progress.listsBegun,
    };
    if (!this.#isSeen(key, pending)) this.#pending.set(key, pending);
    else this.#onSeen(key);
    this.#notify();
  }

  /** True while a write to the object has not been seen. */
  has(key: ObjectKey): boolean {
    return this.#pending.has(key);
  }

  /** Calls `onSeen` once all writes that are pending now have been seen. Returns a function that cancels this. */
  whenSeen(onSeen: () => void): () => void {
    const waiter: Waiter = { upTo: this.#written, onSeen };
    this.#waiting.add(waiter);
    this.#notify();
    return () => this.#waiting.delete(waiter);
  }

  /** Calls `onSeen` once no write to this object is pending. Returns a function that cancels this. */
  whenSeenOf(key: ObjectKey, onSeen: () => void): () => void {
    if (!this.#pending.has(key)) {
      onSeen();
      return () => {};
    }
    const waiting = this.#waitingForOne.get(key) ?? new Set();
    this.#waitingForOne.set(key, waiting.add(onSeen));
    return () => {
      waiting.delete(onSeen);
      if (waiting.size === 0 && this.#waitingForOne.get(key) === waiting) this.#waitingForOne.delete(key);
    };
  }

  /** Lists the cache again: its watch seems to deliver nothing any more. */
  refresh(): void {
    this.#cache.progress.refresh();
  }

  #onProgress(key: ObjectKey | undefined): void {
    if (this.#pending.size === 0) return;
    const keys = key === undefined ? [...this.#pending.keys()] : [key];
    let isAnySeen = false;
    for (const each of keys) {
      const write = this.#pending.get(each);
      if (write !== undefined && this.#isSeen(each, write)) {
        this.#onSeen(each);
        isAnySeen = true;
      }
    }
    if (isAnySeen) this.#notify();
  }

  #onSeen(key: ObjectKey): void {
    this.#pending.delete(key);
    const waiting = this.#waitingForOne.get(key);
    this.#waitingForOne.delete(key);
    for (const onSeen of waiting ?? []) onSeen();
  }

  /** Calls the waiters whose writes have all been seen. These are the first ones: both collections are in order. */
  #notify(): void {
    if (this.#waiting.size === 0) return;
    const [oldest] = this.#pending.values();
    for (const waiter of this.#waiting) {
      if (oldest !== undefined && waiter.upTo >= oldest.number) return;
      this.#waiting.delete(waiter);
      waiter.onSeen();
    }
  }

  #isSeen(key: ObjectKey, write: Pending): boolean {
    const { progress } = this.#cache;
    if (progress.lastListApplied > write.listsBegun) return true;
    const cached = this.#cache.get(key);
    if (
      write.version !== undefined &&
      cached?.metadata.resourceVersion !== write.version &&
      !progress.hasSeen(write.version)
    ) {
      return false;
    }
    if (write.deletion === "none" || cached === undefined || cached.metadata.uid !== write.uid) return true;
    return write.deletion === "deleting" && isDeleting(cached);
  }
}

/** The later of two versions that one client was given. */
function newest(before: string | undefined, after: string | undefined): string | undefined {
  if (before === undefined || after === undefined) return after ?? before;
  const order = compareResourceVersions(before, after);
  return order !== undefined && order > 0 ? before : after;
}
