/** The requests of the registry, from the HTTP layer or from the client in the same process. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { FieldChecks } from "./field-checks.ts";

/** The user of a request. */
export interface UserInfo {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  /** What else is known of the user, by qualified names. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The user of in-process clients: may do everything. */
export const adminUser: UserInfo = {
  name: "admin",
  groups: ["system:masters", "system:authenticated"],
};

/** A node as a user. */
export function nodeUser(name: string): UserInfo {
  return { name: `system:node:${name}`, groups: ["system:nodes", "system:authenticated"] };
}

/** The verb of a request. */
export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** Query parameters that the registry understands, as given. */
export interface ApiQuery {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: string;
  /** Whether a watch begins with the state; left out: it does when it asks for no version. */
  readonly sendInitialEvents?: boolean;
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
  readonly dryRun?: readonly string[];
  readonly fieldManager?: string;
  readonly force?: boolean;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
  readonly orphanDependents?: boolean;
}

/** The kind of a patch. */
export type PatchType = "json" | "merge" | "strategic" | "apply";

/** What a request does, and to what: this value is both authorized and carried out. */
export interface Target {
  readonly verb: Verb;
  readonly group: string;
  readonly version: string;
  /** Plural name. */
  readonly resource: string;
  readonly subresource?: string;
  /** Left out for cluster-scoped kinds and for all namespaces. */
  readonly namespace?: string;
  readonly name?: string;
}

/** One request. */
export interface ApiRequest extends Target {
  readonly query: ApiQuery;
  /** The object, the patch or the DeleteOptions. */
  readonly body?: unknown;
  readonly patchType?: PatchType;
  /** How the client's program names itself: it manages the fields where nothing else is said. */
  readonly userAgent?: string;
  /** The body is what some client wrote, not an object of our own types. */
  readonly fromWire?: boolean;
  /** What is to be done about members that the kind does not have; left out: nothing. */
  readonly fields?: FieldChecks;
  readonly user: UserInfo;
}

/** One object, or a Status of success. */
export interface ObjectAnswer {
  readonly type: "object";
  readonly code: 200 | 201;
  readonly object: KubeObject;
}

/** One page of a list. */
export interface ListAnswer {
  readonly type: "list";
  readonly items: readonly Stored[];
  readonly resourceVersion: string;
  readonly continue?: string;
  /** Items of the following pages, where known. */
  readonly remaining?: number;
}

/** A watch that has begun. */
export interface WatchAnswer {
  readonly type: "watch";
  readonly stream: WatchStream;
}

/** The answer of the registry. Failures are thrown as KubeApiError. */
export type ApiAnswer = ObjectAnswer | ListAnswer | WatchAnswer;

/** One item of a watch. */
export type WatchItem =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored }
  | {
      readonly type: "BOOKMARK";
      readonly resourceVersion: string;
      /** The watch has delivered the initial state. */
      readonly initialEventsEnd?: true;
    }
  | { readonly type: "ERROR"; readonly status: KubeObject };

/**
 * The items of a watch, taken one by one, in the order of their revisions. There is no buffer: a reader that is slower than
 * the history is kept gets an ERROR item with 410, and then the end. One reader, which calls either `take` or `next`, and
 * `close` when it needs no more.
 */
export interface WatchStream {
  /** Called when the reader is so far behind that what comes next is forgotten, and it does not read. */
  onLost: () => void;
  /** The next item at once, undefined when there is none now, "ended" when none will come. */
  take(): WatchItem | "ended" | undefined;
  /** The next item, or undefined at the end. */
  next(): Promise<WatchItem | undefined>;
  close(): void;
}
