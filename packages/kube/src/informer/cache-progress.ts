/** How far a cache has followed the server: for code that waits until the cache shows a change. */
import type { ObjectKey } from "../kube-objects.ts";

/** The progress of one cache. */
export interface CacheProgress {
  /** Number of complete lists started so far. */
  readonly listsBegun: number;
  /** Number of the last list that filled the cache, counted from one; 0 before the first. */
  readonly lastListApplied: number;
  /** True when everything up to the version is in the cache. */
  hasSeen(version: string): boolean;
  /**
   * Whether the cache receives changes of the object: its namespace is selected, and with a label or field selector
   * the object is already in the cache.
   */
  selects(key: ObjectKey): boolean;
  /**
   * Calls `moved` after each change, with the key of the object, or without a key when the whole cache moved on.
   * Returns a function that unsubscribes.
   */
  onProgress(moved: (key: ObjectKey | undefined) => void): () => void;
  /** Starts a new list of everything. */
  refresh(): void;
}
