/**
 * The storage seam of the API server: every object in memory, one revision a commit, a log of
 * changes per resource from which watches and old lists are served.
 *
 * Invariants
 *  - A commit is atomic and synchronous: nothing can come between a read and the commit after it.
 *  - What a reader of the log sees is durable; a commit that could not be stored leaves no trace.
 *  - Objects are frozen and carry the revision of their last change as `metadata.resourceVersion`.
 */
import type { KubeObject, Stored } from "@longshore/kube";

/** One object to be stored, or (without `object`) to be removed. */
export interface Change {
  /** `plural` or `plural.group`. */
  readonly resource: string;
  /** Empty for a cluster-scoped kind. */
  readonly namespace: string;
  readonly name: string;
  readonly object?: KubeObject;
}

/** A change that has happened. */
export interface LogEntry {
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly namespace: string;
  readonly name: string;
  /** The object after the change; for DELETED its last state, at the revision of its deletion. */
  readonly object: Stored;
  readonly previous: Stored | undefined;
}

/** Key of an object in its table: a namespace ends with a slash, so `a-b/x` comes before `a/x`. */
export function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** The result of a commit. */
export interface Commit {
  readonly revision: number;
  /** The objects as stored, in the order of the changes; for a removal the last state. */
  readonly objects: readonly Stored[];
}

/** Which part of a table is requested. */
export interface PageQuery {
  /** The table as it was at this revision; left out: as it is now. */
  readonly revision?: number;
  readonly namespace?: string;
  /** Key (see {@link keyOf}) after which the page begins. */
  readonly after?: string;
  /** Most objects of the page; left out or 0: all. */
  readonly limit?: number;
  readonly selects?: ((object: Stored) => boolean) | undefined;
}

/** A part of a table. */
export interface Page {
  readonly items: readonly Stored[];
  /** Key of the last item when there are more behind it. */
  readonly last?: string;
  /** Objects behind the last item, selected or not. */
  readonly remaining: number;
}

/**
 * The objects of one resource and their history. All reads are synchronous and return frozen objects. `get`, `list` and
 * `page` without a revision show every commit, also one that is not durable yet; the log (`positionAfter`, `entry`,
 * `onAppend`) shows only what is durable, in the order of the revisions. Called by the registry, watches and indexes.
 */
export interface ObjectTable {
  /** Number of objects. */
  readonly size: number;
  get(namespace: string, name: string): Stored | undefined;
  /** All objects, or those of one namespace, in the order of their keys. */
  list(namespace?: string): readonly Stored[];
  /** The objects as they were at `revision`, or undefined when that is no longer known. */
  snapshot(revision: number, namespace?: string): readonly Stored[] | undefined;
  /** Objects in the order of their keys, at a cost that grows with the page and not the table; undefined when the revision is no longer known. */
  page(query: PageQuery): Page | undefined;
  /** Place in the log of the first change after `revision`, or undefined when that is no longer known. */
  positionAfter(revision: number): number | undefined;
  /** The entry at a place; undefined past the end; "gone" when it is no longer known. */
  entry(position: number): LogEntry | "gone" | undefined;
  /** Calls `listener` whenever readable entries were added. Returns a function that unsubscribes. */
  onAppend(listener: () => void): () => void;
}

/**
 * Stores the objects of all resources. The registry is the only writer: it reads, validates and commits without a pause
 * between them, and answers once `durable` has resolved. When commits cannot be made durable, they and all later ones are
 * undone, and their `durable` rejects: a client never gets a success for a change that is lost.
 */
export interface Store {
  /** Revision of the last commit. */
  readonly revision: number;
  /** Revision up to which everything is durable and readable in the logs. */
  readonly readableRevision: number;
  /** The table of a resource, `plural` or `plural.group`; made when first requested. */
  table(resource: string): ObjectTable;
  /** Applies all changes as one, at the next revision. @throws StoreError when the store is closed, or an object to remove does not exist */
  commit(changes: readonly Change[]): Commit;
  /** Resolves once everything committed so far is durable; undefined when it is already. Rejects with {@link StoreError}. */
  durable(): Promise<void> | undefined;
  /** Forgets the history up to `revision`. */
  compact(revision: number): void;
  /** Resolves once what was committed is durable or has failed; later commits throw. */
  close(): Promise<void>;
}

/** The store could not be opened, or could not make a commit durable. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
