/**
 * The seam through which components talk to Kubernetes. Forms: HTTPS to any API server, and in
 * process to the embedded one. Every call takes a signal; a call without its own deadline
 * gets the client's default (30 s).
 */
import type { KubeObject, ObjectRef, Stored } from "./kube-objects.ts";
import type { Resource } from "./resources.ts";

/** Options of every call. */
export interface CallOptions {
  readonly signal: AbortSignal;
}

/** What to list. */
export interface ListOptions extends CallOptions {
  /** One namespace; all of them when left out. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Most items of one page; all in one page when left out. */
  readonly limit?: number;
  readonly continue?: string;
  /** "0": any version, from a cache; otherwise not older than. Most recent when left out. */
  readonly resourceVersion?: string;
  /** Objects carry only apiVersion, kind and metadata (meta/v1 PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
  /** Objects may come without `metadata.managedFields`, which saves keeping them. */
  readonly dropManagedFields?: boolean;
  /** Objects may have equal parts in common with one another, which saves keeping each. */
  readonly shareParts?: boolean;
}

/** One page of a list. */
export interface ListPage<T extends KubeObject> {
  readonly items: readonly Stored<T>[];
  /** The version from which a watch sees all that came after. */
  readonly resourceVersion: string;
  /** Token of the next page; undefined on the last. */
  readonly continue: string | undefined;
}

/** What to watch. */
export interface WatchOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Watch what came after this version. */
  readonly resourceVersion?: string;
  /** The server ends the watch after this time, in seconds. */
  readonly timeoutSeconds?: number;
  /**
   * The watch begins with what there is, as additions in any order, and a bookmark that ends them (watch-list).
   * A server that does not offer it refuses the watch as invalid.
   */
  readonly sendInitialEvents?: boolean;
  /** Objects carry only apiVersion, kind and metadata (meta/v1 PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
  /** Objects may come without `metadata.managedFields`, which saves keeping them. */
  readonly dropManagedFields?: boolean;
  /** Objects may have equal parts in common with one another, which saves keeping each. */
  readonly shareParts?: boolean;
}

/** A change seen by a watch; an error inside the stream (410 above all) is thrown as {@link KubeApiError}. */
export type WatchEvent<T extends KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored<T> }
  | {
      readonly type: "BOOKMARK";
      readonly resourceVersion: string;
      /** The watch has delivered every object that existed when it began. */
      readonly initialEventsEnd?: true;
    };

/** The events of one watch, one after the other. */
export interface WatchEvents<T extends KubeObject> extends AsyncIterator<WatchEvent<T>> {
  /**
   * The next event if it has come already; undefined: ask `next`. A burst is taken without waiting for each. Never
   * called while `next` is under way; throws what `next` would reject with.
   */
  ready?(): WatchEvent<T> | undefined;
}

/** A watch that begins when its events are requested. */
export interface WatchStream<T extends KubeObject> extends AsyncIterable<WatchEvent<T>> {
  [Symbol.asyncIterator](): WatchEvents<T>;
}

/** A patch and its kind. */
export interface Patch {
  readonly type: "json" | "merge" | "strategic" | "apply";
  readonly body: unknown;
  /** Field manager, for apply. */
  readonly fieldManager?: string;
  readonly force?: boolean;
  /** The server does everything but store it: the answer is what would be there. */
  readonly dryRun?: true;
}

/** How to delete. */
export interface DeleteOptions extends CallOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
}

/**
 * Talks to one API server. Answers are shared and must not be changed. Failures are {@link KubeApiError} (the server has
 * refused) or {@link KubeTransportError} (whether a write took effect is unknown); an abort rejects with the signal's
 * reason. Only what is safe is sent again by itself: what was never sent or was refused for now, and broken reads.
 */
export interface KubeClient {
  /** The object, or undefined when it does not exist (404). */
  get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions,
  ): Promise<Stored<T> | undefined>;
  /** One page of what there is: all in one where `limit` is left out. Its `continue` token may expire (410, `isExpired`). */
  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions): Promise<ListPage<T>>;
  /** Ends when the server ends the stream; throws when it breaks. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): WatchStream<T>;
  /** Stores a new object and returns it as stored; 409 AlreadyExists when there is one of that name. */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options: CallOptions): Promise<Stored<T>>;
  /** Replaces the object; a `resourceVersion` in it makes a stale writer lose (409 Conflict). */
  update<T extends KubeObject>(resource: Resource<T>, object: T, options: CallOptions): Promise<Stored<T>>;
  /** Replaces the status alone; `resourceVersion` as in {@link update}. For a kind without one: 404. */
  updateStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: CallOptions,
  ): Promise<Stored<T>>;
  /**
   * Changes parts of the object; a `metadata.resourceVersion` or `uid` in the body makes it fail (409) on another than
   * that. 404 when there is no such object, but for `apply`, which makes it.
   */
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: CallOptions & { readonly subresource?: "status" | "scale" },
  ): Promise<Stored<T>>;
  /** Asks for deletion; false when there was nothing to delete. */
  delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions,
  ): Promise<boolean>;
  /** POSTs to a sub-resource such as `binding`, `eviction` or `token`. Returns the response object. */
  createSubresource<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
    options: CallOptions,
  ): Promise<KubeObject>;
  /** The version of the resource that is served and that our code understands best, or undefined: not served. */
  servedVersion(resource: Resource<KubeObject>, options: CallOptions): Promise<string | undefined>;
}

/** A cause inside a `Status`. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The body of a failed request (meta/v1 Status). */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata?: object;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

/** The API server answered, with a failure. */
export class KubeApiError extends Error {
  override readonly name = "KubeApiError";
  /** HTTP status code. */
  readonly code: number;
  /** Machine-readable reason: NotFound, Conflict, AlreadyExists, Invalid, Expired, … */
  readonly reason: string;
  readonly status: Status;
  constructor(status: Status) {
    super(status.message ?? status.reason ?? `HTTP ${status.code ?? 0}`);
    this.code = status.code ?? 0;
    this.reason = status.reason ?? "";
    this.status = status;
  }
}

/** No usable answer came: refused, reset, timed out, cut off. Whether the request took effect is unknown. */
export class KubeTransportError extends Error {
  override readonly name = "KubeTransportError";
}

function hasReason(error: unknown, ...reasons: readonly string[]): boolean {
  return error instanceof KubeApiError && reasons.includes(error.reason);
}

/** 409 because the object changed since it was read. */
export const isConflict = (error: unknown): boolean => hasReason(error, "Conflict");
/** 409 because an object of that name exists. */
export const isAlreadyExists = (error: unknown): boolean => hasReason(error, "AlreadyExists");
/** 404. */
export const isNotFound = (error: unknown): boolean => hasReason(error, "NotFound");
/** 410: the asked-for version is no longer there; list again. */
export const isExpired = (error: unknown): boolean => hasReason(error, "Expired", "Gone");
/** 422: the object is refused as it is; no retry helps. */
export const isInvalid = (error: unknown): boolean => hasReason(error, "Invalid");
/** 429: an eviction blocked by a budget, or a server that asks to wait. */
export const isTooManyRequests = (error: unknown): boolean => hasReason(error, "TooManyRequests");
