/**
 * Records what happened to an object as API Events, for users to read.
 *
 * Invariants
 *  - Recording never waits, never throws and never fails its caller; an event can be lost, work cannot.
 *  - A repeated event about the same object raises `count` of the stored Event instead of creating another.
 *  - The number of events of one object is bounded (25 at once, then one every five minutes), and so is the memory.
 */

import {
  abortable,
  type BackoffPolicy,
  backoffMs,
  type Component,
  TaskGroup,
  withDeadline,
} from "@longshore/runtime";
import type { Event, ObjectReference } from "kubernetes-types/core/v1.js";
import { apiTime } from "../api-time.ts";
import { isNotFound, KubeApiError } from "../kube-client.ts";
import type { KubeEnv } from "../kube-env.ts";
import type { KubeObject, Stored } from "../kube-objects.ts";
import { apiVersionOf, type Resource, resources } from "../resources.ts";
import { EventCorrelator, type EventText } from "./event-correlator.ts";

/** Who reports. */
export interface EventRecorderOptions {
  /** `source.component` of the events, e.g. `attachdetach-controller`. */
  readonly component: string;
  /** `source.host`: the node on which it runs, where that matters. */
  readonly host?: string;
}

/** What an event is about: an object that carries apiVersion and kind, or a reference. */
export type EventSubject = KubeObject | ObjectReference;

/**
 * Records events in the background, one write at a time, with six attempts each. The subject's namespace is that of the
 * Event, `default` for a subject without one. `stop` drops what is not written yet: `flush` before it where that matters.
 */
export interface EventRecorder extends Component {
  /**
   * Says that `reason` (one word in CamelCase) happened to `subject`. Returns at once and never throws; the message is cut
   * at 1024 characters.
   */
  event(subject: EventSubject, type: "Normal" | "Warning", reason: string, message: string): void;
  /** Resolves once each event recorded so far is stored or dropped. */
  flush(signal: AbortSignal): Promise<void>;
}

/** Events that wait to be written; more are dropped, the newest first. */
const PENDING_MAX = 1000;
const ATTEMPTS_MAX = 6;
const WRITE_DEADLINE_MS = 30_000;
const BACKOFF: BackoffPolicy = { initialMs: 500, maximumMs: 10_000, jitter: 0.5 };
/** Longest message that the API server takes (core validation of events). */
const MESSAGE_MAX = 1024;

/** A recorder whose events come from `component`. */
export function createEventRecorder(env: KubeEnv, options: EventRecorderOptions): EventRecorder {
  return new BackgroundEventRecorder(env, options);
}

/** The reference of an object, also where the object itself does not carry its kind. */
export function involvedObject<T extends KubeObject>(
  resource: Resource<T>,
  object: KubeObject,
): ObjectReference {
  const { name, namespace, uid, resourceVersion } = object.metadata ?? {};
  return {
    apiVersion: object.apiVersion ?? apiVersionOf(resource),
    kind: object.kind ?? resource.kind,
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

/** Occurrences of one event that are not written yet. */
interface PendingEvent {
  readonly key: string;
  readonly text: EventText;
  occurrences: number;
  firstAt: string;
  lastAt: string;
}

/** The Event object that stands for a key. */
interface WrittenEvent {
  readonly name: string;
  readonly namespace: string;
  count: number;
}

const WRITTEN_MAX = 4096;

class BackgroundEventRecorder implements EventRecorder {
  readonly #env: KubeEnv;
  readonly #options: EventRecorderOptions;
  readonly #tasks: TaskGroup;
  readonly #correlator: EventCorrelator;
  readonly #pending = new Map<string, PendingEvent>();
  readonly #written = new Map<string, WrittenEvent>();
  #idle: Promise<void> = Promise.resolve();
  #writing = false;

  constructor(env: KubeEnv, options: EventRecorderOptions) {
    this.#env = env;
    this.#options = options;
    this.#correlator = new EventCorrelator(env.clock);
    this.#tasks = new TaskGroup((error) => env.logger.error("event recorder failed", { error }));
  }

  event(subject: EventSubject, type: "Normal" | "Warning", reason: string, message: string): void {
    try {
      this.#record({ subject: referenceOf(subject), type, reason, message: message.slice(0, MESSAGE_MAX) });
    } catch (error) {
      this.#env.logger.error("an event could not be recorded", { reason, error });
    }
  }

  async flush(signal: AbortSignal): Promise<void> {
    while (this.#writing) await abortable(this.#idle, signal);
  }

  stop(): Promise<void> {
    return this.#tasks.stop();
  }

  #record(said: EventText): void {
    const text = this.#correlator.admit(said);
    if (text === undefined) return;
    const key = keyOfEvent(text);
    const at = apiTime(this.#env.clock.now());
    const pending = this.#pending.get(key);
    if (pending !== undefined) {
      pending.occurrences++;
      pending.lastAt = at;
      return;
    }
    if (this.#pending.size >= PENDING_MAX) {
      this.#env.logger.debug("too many events wait: one dropped", { reason: text.reason });
      return;
    }
    this.#pending.set(key, { key, text, occurrences: 1, firstAt: at, lastAt: at });
    this.#startWriting();
  }

  #startWriting(): void {
    if (this.#writing || this.#tasks.signal.aborted) return;
    this.#writing = true;
    this.#idle = new Promise((resolve) => {
      this.#tasks.spawn(async (signal) => {
        try {
          await this.#writeAll(signal);
        } finally {
          this.#writing = false;
          resolve();
        }
      });
    });
  }

  async #writeAll(signal: AbortSignal): Promise<void> {
    // One turn later, so that `event` never calls the client before it returns.
    await Promise.resolve();
    for (;;) {
      const next = this.#pending.values().next();
      if (next.done === true || signal.aborted) return;
      this.#pending.delete(next.value.key);
      await this.#writeWithRetry(next.value, signal);
    }
  }

  async #writeWithRetry(pending: PendingEvent, parent: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await withDeadline(this.#env.clock, WRITE_DEADLINE_MS, parent, (signal) =>
          abortable(this.#write(pending, signal), signal),
        );
        return;
      } catch (error) {
        if (parent.aborted) return;
        if (attempt >= ATTEMPTS_MAX || isRefused(error)) {
          this.#env.logger.warn("an event was given up", { reason: pending.text.reason, error });
          return;
        }
      }
      await this.#env.clock.sleep(backoffMs(BACKOFF, attempt, this.#env.random), parent).catch(() => {});
    }
  }

  async #write(pending: PendingEvent, signal: AbortSignal): Promise<void> {
    const written = this.#written.get(pending.key);
    if (written !== undefined) {
      const count = written.count + pending.occurrences;
      try {
        await this.#env.kube.patch(
          resources.events,
          { name: written.name, namespace: written.namespace },
          { type: "merge", body: { count, lastTimestamp: pending.lastAt } },
          { signal },
        );
        written.count = count;
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        this.#written.delete(pending.key);
      }
    }
    await this.#create(pending, signal);
  }

  async #create(pending: PendingEvent, signal: AbortSignal): Promise<void> {
    const { subject, type, reason, message } = pending.text;
    const namespace = subject.namespace ?? "default";
    const suffix = this.#env.random.uuid("event name").replaceAll("-", "").slice(0, 16);
    const { component, host } = this.#options;
    const event: Event = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: eventName(subject.name ?? "unknown", suffix), namespace },
      involvedObject: subject,
      reason,
      message,
      type,
      source: { component, ...(host === undefined ? {} : { host }) },
      count: pending.occurrences,
      firstTimestamp: pending.firstAt,
      lastTimestamp: pending.lastAt,
      reportingComponent: component,
      reportingInstance: host ?? "",
    };
    const stored: Stored<Event> = await this.#env.kube.create(resources.events, event, { signal });
    this.#written.set(pending.key, { name: stored.metadata.name, namespace, count: pending.occurrences });
    if (this.#written.size > WRITTEN_MAX) {
      for (const oldest of this.#written.keys()) {
        this.#written.delete(oldest);
        break;
      }
    }
  }
}

function referenceOf(subject: EventSubject): ObjectReference {
  if (!("metadata" in subject)) return subject as ObjectReference;
  const { name, namespace, uid, resourceVersion } = subject.metadata ?? {};
  return {
    ...(subject.apiVersion === undefined ? {} : { apiVersion: subject.apiVersion }),
    ...(subject.kind === undefined ? {} : { kind: subject.kind }),
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

function keyOfEvent({ subject, type, reason, message }: EventText): string {
  return JSON.stringify([
    subject.kind,
    subject.namespace,
    subject.name,
    subject.uid,
    subject.apiVersion,
    subject.fieldPath,
    type,
    reason,
    message,
  ]);
}

/** Cut at the front, since the suffix makes the name unique; a name begins with a letter or a digit. */
function eventName(subjectName: string, suffix: string): string {
  return `${subjectName}.${suffix}`.slice(-253).replace(/^[^a-z0-9]+/, "");
}

/** The server will never accept this event: it is invalid or forbidden, or its namespace is deleted or terminating. */
function isRefused(error: unknown): boolean {
  return error instanceof KubeApiError && error.code >= 400 && error.code < 500 && error.code !== 429;
}
