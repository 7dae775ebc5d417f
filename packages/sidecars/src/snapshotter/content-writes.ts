/** What the snapshotter writes into contents, of single snapshots and of groups alike. */
import {
  type EventRecorder,
  involvedObject,
  isConflict,
  isDeleting,
  isNotFound,
  type KubeEnv,
  type KubeObject,
  type Patch,
  type Resource,
  type Stored,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import type { SnapshotError } from "@longshore/storage";
import { apiTime } from "../common/env.ts";

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

/** How a failure is reported to users. */
export interface ToldFailure {
  readonly reason: string;
  readonly what: string;
  /** It is written into the status, too. */
  readonly inStatus: boolean;
}

/** A content of either kind, as far as both are alike. */
export type ContentObject = KubeObject & { status?: { error?: SnapshotError | null } };

/** Writes to contents of one kind. */
export class ContentWrites<C extends ContentObject> {
  readonly #env: KubeEnv;
  readonly #events: Pick<EventRecorder, "event">;
  readonly #kind: ContentKind<C>;

  constructor(env: KubeEnv, events: Pick<EventRecorder, "event">, kind: ContentKind<C>) {
    this.#env = env;
    this.#events = events;
    this.#kind = kind;
  }

  /** Says that the driver is about to be asked, and that the content is not to go before the outcome is known. */
  async mark(content: Stored<C>, signal: AbortSignal): Promise<Stored<C>> {
    const { beingCreatedAnnotation, finalizer } = this.#kind;
    const { annotations, finalizers = [], resourceVersion } = content.metadata;
    const isMarked = annotations?.[beingCreatedAnnotation] !== undefined;
    // None can be added to what is being deleted.
    const isHeld = finalizers.includes(finalizer) || isDeleting(content);
    if (isMarked && isHeld) return content;
    const metadata = {
      // With it the patch fails on a content that was deleted meanwhile; the next pass reads the current state.
      resourceVersion,
      annotations: { [beingCreatedAnnotation]: "yes" },
      ...(isHeld ? {} : { finalizers: [...finalizers, finalizer] }),
    };
    return this.#patch(content, { type: "merge", body: { metadata } }, { signal });
  }

  /** Says that the outcome is known. */
  async unmark(content: Stored<C>, signal: AbortSignal): Promise<void> {
    const { beingCreatedAnnotation } = this.#kind;
    if (content.metadata.annotations?.[beingCreatedAnnotation] === undefined) return;
    const body = { metadata: { annotations: { [beingCreatedAnnotation]: null } } };
    await this.#patch(content, { type: "merge", body }, { signal });
  }

  /** Writes what is new of the status; undefined: nothing is. */
  async tell(
    content: Stored<C>,
    status: Readonly<Record<string, unknown>> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (status === undefined) return;
    await this.#patch(content, { type: "merge", body: { status } }, { signal, subresource: "status" });
  }

  /** Takes the finalizer off. */
  async letGo(content: Stored<C>, signal: AbortSignal): Promise<void> {
    const { finalizers = [], resourceVersion } = content.metadata;
    const rest = finalizers.filter((finalizer) => finalizer !== this.#kind.finalizer);
    if (rest.length === finalizers.length) return;
    const metadata = { resourceVersion, finalizers: rest.length === 0 ? null : rest };
    try {
      await this.#patch(content, { type: "merge", body: { metadata } }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Reports a failure to users, once for as long as it stays the same. Never throws. */
  async report(content: Stored<C>, failure: ToldFailure, error: unknown, signal: AbortSignal): Promise<void> {
    // Conflict: not a failure; retry with the current state.
    if (signal.aborted || isConflict(error)) return;
    const message = `${failure.what}: ${errorChain(error)}`;
    if (failure.inStatus && content.status?.error?.message === message) return;
    const subject = involvedObject(this.#kind.resource, content);
    this.#events.event(subject, "Warning", failure.reason, message);
    if (!failure.inStatus) return;
    const status = { readyToUse: false, error: { message, time: apiTime(this.#env.clock) } };
    try {
      await this.tell(content, status, signal);
    } catch (statusError) {
      if (!isNotFound(statusError))
        this.#env.logger.warn("cannot report a failed snapshot", { error: statusError });
    }
  }

  #patch(
    content: Stored<C>,
    change: Patch,
    options: { readonly signal: AbortSignal; readonly subresource?: "status" },
  ): Promise<Stored<C>> {
    return this.#env.kube.patch(this.#kind.resource, { name: content.metadata.name }, change, options);
  }
}
