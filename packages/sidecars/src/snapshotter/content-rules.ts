/** What differs between contents of single snapshots and of groups. */
import type { KubeObject, Resource, SecretReference, Stored } from "@longshore/kube";
import type { SnapshotError } from "@longshore/storage";
import type { ContentStep } from "./content-step.ts";

/** A content of either kind, as far as both are alike. */
export type ContentObject = KubeObject & {
  spec: object;
  status?: { error?: SnapshotError | null; volumeGroupSnapshotHandle?: string };
};

/** A kind of content. */
export interface ContentKind<C extends KubeObject> {
  readonly resource: Resource<C>;
  /** Holds a content until its snapshots at the driver are deleted or released. */
  readonly finalizer: string;
  /** Says that the driver was asked for snapshots and that it is not known what became of it. */
  readonly beingCreatedAnnotation: string;
  /** What it is the content of, in words for users. */
  readonly noun: string;
  /** Before the reasons of its events, as the reference has them. */
  readonly reasonPrefix: "" | "Group";
}

/** The types of one kind of content. */
export interface ContentTypes {
  readonly content: ContentObject;
  readonly class: KubeObject;
  /** Names, to the driver, that which exists. */
  readonly handle: unknown;
  /** What the driver is asked to make, but for the secret. */
  readonly request: object;
  /** How it is, by the driver. */
  readonly state: { readonly ready: boolean };
}

/** What a decision over contents of one kind needs to know of them. Pure. */
export interface ContentRules<T extends ContentTypes> {
  readonly kind: ContentKind<T["content"]>;
  /** What is to be done for the content. */
  step(content: T["content"]): ContentStep<T["handle"]>;
  /** Its handle is known: nothing can be lost, and the call is repeated without further ado until it is ready. */
  isKnown(content: T["content"]): boolean;
  /** @throws SnapshotCallError, ParameterError when it cannot be made as things are */
  creationRequest(content: T["content"], contentClass: T["class"] | undefined): T["request"];
  /** The secret for a call that creates or deletes. @throws SnapshotCallError when half of one is named */
  secretOf(content: T["content"]): SecretReference | undefined;
  /** The secret for a look. @throws SnapshotCallError */
  lookSecretOf(content: T["content"], contentClass: T["class"] | undefined): SecretReference | undefined;
  /** How it is by what is known, where the driver cannot be asked; undefined: ask it. */
  assumedState(handle: T["handle"]): T["state"] | undefined;
  /** The status depends on the version of the API that the server has. */
  readonly readsServedVersion: boolean;
  /** What is new of the status; undefined: nothing is. @param nowNs stands in for a time that the driver does not report */
  statusPatch(
    content: T["content"],
    state: T["state"],
    nowNs: number,
    servedVersion: string | undefined,
  ): Readonly<Record<string, unknown>> | undefined;
}

/** The calls to the driver about contents of one kind. */
export interface ContentCalls<T extends ContentTypes> {
  /** Whether the content belongs to the driver. */
  isOurs(content: T["content"]): boolean;
  classOf(content: T["content"]): T["class"] | undefined;
  create(request: T["request"], secrets: Secrets, signal: AbortSignal): Promise<T["state"]>;
  look(handle: T["handle"], secrets: Secrets, signal: AbortSignal): Promise<T["state"]>;
  delete(handle: T["handle"], secrets: Secrets, signal: AbortSignal): Promise<void>;
}

/** The values of a secret. */
export type Secrets = Record<string, string>;

/** How far the driver's answer was stored. */
export interface KnownState<T extends ContentTypes> {
  readonly state: T["state"];
  /** When it was known, in nanoseconds since 1970. */
  readonly nowNs: number;
}

/** What the actions of this pass have read and done. */
export interface ContentProgress<T extends ContentTypes> {
  /** The content was read from the server: a deletion is decided on that, not on a cache. */
  readonly isLive?: boolean;
  readonly secrets?: Secrets;
  /** The driver is to be asked for the snapshot, and that is stored. */
  readonly isBegun?: boolean;
  readonly known?: KnownState<T>;
  readonly served?: { readonly version: string | undefined };
  readonly isStatusStored?: boolean;
  readonly isMarkRemoved?: boolean;
  readonly isDeleted?: boolean;
  readonly isFinalizerRemoved?: boolean;
  readonly failure?: ContentFailure;
}

/** A failure of this pass, and how far it was reported. */
export interface ContentFailure {
  readonly error: unknown;
  /** The driver surely does not make the snapshot: the mark goes before the failure is reported. */
  readonly isFinalCreateError?: boolean;
  readonly isEmitted?: boolean;
  readonly isStored?: boolean;
}

/** What one pass over a content knows. */
export interface ObservedContent<T extends ContentTypes> {
  readonly content: Stored<T["content"]>;
  /** The class that the content names; undefined: it names none, or that is gone. */
  readonly contentClass: T["class"] | undefined;
  /** In nanoseconds since 1970. */
  readonly nowNs: number;
  readonly progress: ContentProgress<T>;
}
