/** What a store hands to something durable, and takes from it: `disk/` is one. */
import type { Stored } from "@longshore/kube";
import type { Change } from "./store.ts";

/**
 * Makes commits durable, several at once. Called by the store, in the order of the revisions and never twice at the same
 * time. A rejection means that none of the commits counts: the store undoes them and everything built on them.
 */
export interface Persistence {
  /**
   * Resolves once all the commits are durable, all or none; called again only when it has settled.
   * @param checkpoint returns synchronously everything that is durable before these commits
   */
  persist(commits: readonly DurableCommit[], checkpoint: () => BaseContents): Promise<void>;
  close(): Promise<void>;
}

/** One commit, on its way to the disk. */
export interface DurableCommit {
  readonly revision: number;
  readonly changes: readonly (Change & { readonly object?: Stored })[];
}

/** The content of the store when it was opened. */
export interface StoredState {
  readonly revision: number;
  /** The newest revision of which the changes are forgotten, by resource; under "" for all resources. */
  readonly forgotten: Readonly<Record<string, number>>;
  /** The objects before the changes. */
  readonly base: readonly StoredRecord[];
  /** The changes that are remembered, oldest first. */
  readonly changes: readonly StoredRecord[];
}

/** One change, or one object that was there before the changes. */
export interface StoredRecord {
  readonly revision: number;
  /** `plural` or `plural.group`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** The object as JSON; left out for a removal. */
  readonly json?: Buffer;
}

/** What a base says of itself. */
export interface AboutBase {
  /** Revision of the last commit in it. */
  readonly revision: number;
  /** The newest revision of which the changes are forgotten, by resource. */
  readonly forgotten: Readonly<Record<string, number>>;
}

/** A record whose JSON is made when its turn comes. */
export interface BaseRecord extends Omit<StoredRecord, "json"> {
  readonly json: (() => string | Buffer) | undefined;
}

/** What a base is to hold; see AboutBase. */
export interface BaseContents extends AboutBase {
  readonly base: Iterable<BaseRecord>;
  readonly changes: Iterable<BaseRecord>;
}
