/** How far a cache has followed the server: what those look at who wait for it to show something. */
import type { ObjectKey } from "../objects.ts";

/** The progress of one cache. */
export interface CacheProgress {
  /** Complete lists that were begun so far. */
  readonly listsBegun: number;
  /** Of these, the last one that filled the cache, counted from one; 0 before the first. */
  readonly lastListApplied: number;
  /** True when everything up to the version is in the cache. */
  hasSeen(version: string): boolean;
  /** Whether changes of the object are told: its namespace is selected, and where objects are selected by label or field, it is in the cache. */
  selects(key: ObjectKey): boolean;
  /** Calls `told` after each change, with its key, or without one when the whole cache moved on; gives the way to end it. */
  onProgress(told: (key: ObjectKey | undefined) => void): () => void;
  /** Has everything listed anew. */
  refresh(): void;
}
