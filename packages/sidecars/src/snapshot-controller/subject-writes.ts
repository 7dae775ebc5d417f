/** What the snapshot controller writes into the objects of users, VolumeSnapshots and VolumeGroupSnapshots alike. */
import {
  type EventRecorder,
  finalizersMergePatch,
  involvedObject,
  isNotFound,
  type KubeEnv,
  type KubeObject,
  type Resource,
  refOf,
  type Stored,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import type { SnapshotError } from "@longshore/storage";

/** An object with the error of its status. */
export type Subject = KubeObject & { status?: { error?: SnapshotError | null } };

/** Writes to objects of one kind, and the events about them. */
export class SubjectWrites<T extends Subject> {
  readonly resource: Resource<T>;
  readonly #env: KubeEnv;
  readonly #events: Pick<EventRecorder, "event">;

  constructor(env: KubeEnv, events: Pick<EventRecorder, "event">, resource: Resource<T>) {
    this.#env = env;
    this.#events = events;
    this.resource = resource;
  }

  /** Emits an event about the object. */
  event(subject: Stored<T>, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#events.event(involvedObject(this.resource, subject), type, reason, message);
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
    await this.#env.kube.patch(this.resource, refOf(subject), { type: "merge", body }, { signal });
  }

  /** Adds finalizers to those that are there. */
  async addFinalizers(
    subject: Stored<T>,
    wanted: readonly string[],
    signal: AbortSignal,
    others?: object,
  ): Promise<void> {
    const { finalizers } = wanted.reduce(withFinalizer<Stored<T>>, subject).metadata;
    await this.change(subject, { finalizers }, signal, others);
  }

  /** Takes finalizers off the version that was seen. */
  async removeFinalizers(subject: Stored<T>, ours: readonly string[], signal: AbortSignal): Promise<void> {
    const { metadata } = finalizersMergePatch(ours.reduce(withoutFinalizer<Stored<T>>, subject));
    try {
      await this.change(subject, metadata, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Writes into the status. */
  async patchStatus(
    subject: Stored<T>,
    status: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    const patch = { type: "merge", body: { status } } as const;
    await this.#env.kube.patch(this.resource, refOf(subject), patch, { signal, subresource: "status" });
  }
}
