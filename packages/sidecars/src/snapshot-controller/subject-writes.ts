/** What the snapshot controller writes into the objects of users, VolumeSnapshots and VolumeGroupSnapshots alike. */
import {
  type EventRecorder,
  involvedObject,
  isConflict,
  isNotFound,
  type KubeEnv,
  type KubeObject,
  keyOf,
  type ReconcileResult,
  type Resource,
  refOf,
  type Stored,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import type { SnapshotError } from "@longshore/storage";
import { apiTime } from "../common/env.ts";

/** Something is not as it is to be. The text is shown to users. */
export class SnapshotFailedError extends Error {
  override readonly name = "SnapshotFailedError";
}

/** Look at once: there may be more to do, and the caches show by then what was done. */
export const again: ReconcileResult = { requeueAfterMs: 0 };

/** How a failed step is reported. */
export interface FailedStep {
  readonly reason: string;
  readonly what: string;
  /** The snapshot is not usable in this state. */
  readonly notReady: boolean;
}

/** What is wrong with an object. */
export interface Failure {
  readonly reason: string;
  readonly message: string;
  readonly notReady: boolean;
}

type Subject = KubeObject & { status?: { error?: SnapshotError | null } };

/** Writes to objects of one kind, and the events about them. */
export class SubjectWrites<T extends Subject> {
  readonly #env: KubeEnv;
  readonly #events: Pick<EventRecorder, "event">;
  readonly #resource: Resource<T>;

  constructor(env: KubeEnv, events: Pick<EventRecorder, "event">, resource: Resource<T>) {
    this.#env = env;
    this.#events = events;
    this.#resource = resource;
  }

  /** Sends an event about the object. */
  event(subject: Stored<T>, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#events.event(involvedObject(this.#resource, subject), type, reason, message);
  }

  /** Changes metadata, and what else is given, unless another client has changed the object. */
  async change(
    subject: Stored<T>,
    metadata: object,
    signal: AbortSignal,
    others: object = {},
  ): Promise<void> {
    const { resourceVersion } = subject.metadata;
    const body = { ...others, metadata: { resourceVersion, ...metadata } };
    await this.#env.kube.patch(this.#resource, refOf(subject), { type: "merge", body }, { signal });
  }

  /** Adds finalizers to those that are there. */
  async hold(
    subject: Stored<T>,
    wanted: readonly string[],
    signal: AbortSignal,
    others?: object,
  ): Promise<void> {
    const finalizers = [...new Set([...(subject.metadata.finalizers ?? []), ...wanted])];
    await this.change(subject, { finalizers }, signal, others);
  }

  /** Takes finalizers off. */
  async letGo(subject: Stored<T>, ours: readonly string[], signal: AbortSignal): Promise<void> {
    const rest = (subject.metadata.finalizers ?? []).filter((finalizer) => !ours.includes(finalizer));
    try {
      await this.change(subject, { finalizers: rest.length === 0 ? null : rest }, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Writes into the status. */
  async tell(
    subject: Stored<T>,
    status: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    const patch = { type: "merge", body: { status } } as const;
    await this.#env.kube.patch(this.#resource, refOf(subject), patch, { signal, subresource: "status" });
  }

  /** Reports what is wrong, once for as long as it stays the same, and throws it so that the queue backs off. */
  async fail(subject: Stored<T>, failure: Failure, signal: AbortSignal): Promise<never> {
    await this.#tellFailure(subject, failure, signal);
    throw new SnapshotFailedError(`${this.#resource.kind} "${keyOf(subject)}": ${failure.message}`);
  }

  /** Runs a step. Reports a failure in the status and in an event, then throws it again so that the queue backs off. */
  async reporting(
    subject: Stored<T>,
    step: FailedStep,
    signal: AbortSignal,
    work: () => Promise<void>,
  ): Promise<ReconcileResult> {
    try {
      await work();
      return again;
    } catch (error) {
      // Conflict or deleted: not a failure; retry with the current state.
      if (signal.aborted || isConflict(error) || isNotFound(error)) throw error;
      const { reason, what, notReady } = step;
      await this.#tellFailure(subject, { reason, message: `${what} ${errorChain(error)}`, notReady }, signal);
      throw error;
    }
  }

  async #tellFailure(
    subject: Stored<T>,
    { reason, message, notReady }: Failure,
    signal: AbortSignal,
  ): Promise<void> {
    if (subject.status?.error?.message === message) return;
    this.event(subject, "Warning", reason, message);
    const error = { message, time: apiTime(this.#env.clock) };
    try {
      await this.tell(subject, notReady ? { error, readyToUse: false } : { error }, signal);
    } catch (statusError) {
      if (!isNotFound(statusError))
        this.#env.logger.warn("cannot report a failed snapshot", { error: statusError });
    }
  }
}
