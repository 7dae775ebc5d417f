/**
 * When an operation that failed may be tried again. Source: docs/behaviour/controllers.md B1: back-off
 * 500 ms to 2 min 2 s, which no event shortens.
 *
 * A work queue runs a key at once when an event wakes it, also one that waits for its retry. An operation of a provider
 * that fails writes to the objects that it is about, and so wakes itself: its delay has to hold against that.
 */
import type { Clock } from "@longshore/runtime";
import { type BackoffPolicy, backoffMs } from "@longshore/runtime";

/** As for all operations on volumes. */
const backoff: BackoffPolicy = { initialMs: 500, maximumMs: 122_000 };

/** Most time of one call of a provider, in milliseconds (docs/behaviour/controllers.md A7). */
export const providerTimeoutMs = 180_000;

/** A record lasts longer than the longest delay with the call after it, or the delay of a call that hangs would never grow. */
const keptMs = 2 * (backoff.maximumMs + providerTimeoutMs);

interface Failed {
  readonly failures: number;
  /** On the monotonic clock, in milliseconds. */
  readonly retryAtMs: number;
}

/** Counts failures by the identity of an operation: its name with the UID of its object. */
export class OperationAttempts {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #failed = new Map<string, Failed>();
  #lastPruneMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Milliseconds until the operation may be tried; 0: now. */
  waitMs(operation: string): number {
    const retryAtMs = this.#failed.get(operation)?.retryAtMs ?? 0;
    return Math.max(0, retryAtMs - this.#clock.monotonicMs());
  }

  /** The operation has failed. @returns milliseconds until it may be tried again */
  failed(operation: string): number {
    const nowMs = this.#clock.monotonicMs();
    this.#prune(nowMs);
    const failures = (this.#failed.get(operation)?.failures ?? 0) + 1;
    const retryInMs = backoffMs(backoff, failures);
    this.#failed.set(operation, { failures, retryAtMs: nowMs + retryInMs });
    return retryInMs;
  }

  /** The operation has succeeded, or there is nothing to do any more. */
  forget(operation: string): void {
    this.#failed.delete(operation);
  }

  /** Drops what was not tried again for longer than any delay and call: its object is gone. */
  #prune(nowMs: number): void {
    if (nowMs - this.#lastPruneMs < keptMs) return;
    this.#lastPruneMs = nowMs;
    for (const [operation, { retryAtMs }] of this.#failed) {
      if (nowMs - retryAtMs > keptMs) this.#failed.delete(operation);
    }
  }
}

/** Volumes that are made, and volumes that are deleted, at the same time. */
export const operationsAtOnce = 100;
