/**
 * The seam through which all time enters: wall time, durations, sleeps, timers and deadlines.
 * Real form: {@link systemClock}; virtual form: `VirtualClock`. Nothing else may look at a clock.
 */

import { setMaxListeners } from "node:events";

/** A timer that has been set; `cancel` is idempotent and a no-op once the timer has fired. */
export interface Timer {
  /** From here on it does not fire. */
  cancel(): void;
}

/**
 * Time, as a component sees it. Timers, and with them sleeps and deadlines, fire in the order of their due time, those
 * of one instant in the order they were set, and never before the code that set them has gone on. A delay below 0 counts
 * as 0; there is no longest one.
 */
export interface Clock {
  /** Wall time, for timestamps in API objects. It can jump: never use it to measure a duration. */
  now(): Date;
  /** Milliseconds from an arbitrary origin, never decreasing; for back-off, deadlines and metrics. */
  monotonicMs(): number;
  /** Resolves after `ms` milliseconds, or rejects with the signal's reason if that comes first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `fire` once, `ms` milliseconds from now, unless cancelled before. */
  timer(ms: number, fire: () => void): Timer;
  /**
   * A signal that aborts with a {@link DeadlineError} `ms` from now on this clock, or together with
   * `parent`. Prefer {@link withDeadline}, which also drops the timer when the work ends early.
   */
  deadline(ms: number, parent: AbortSignal): AbortSignal;
}

/** The reason of a signal whose deadline has passed. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  /** The length of the deadline that passed, in milliseconds. */
  readonly afterMs: number;
  constructor(afterMs: number) {
    super(`deadline of ${afterMs} ms exceeded`);
    this.afterMs = afterMs;
  }
}

/**
 * Runs `work` with a signal that aborts after `ms`, by default with a {@link DeadlineError} of that length; the timer is
 * dropped as soon as `work` settles.
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  late: () => DeadlineError = () => new DeadlineError(ms),
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  setMaxListeners(0, controller.signal); // One listener a call under way: many are no leak.
  const onParentAbort = () => controller.abort(parent.reason);
  parent.addEventListener("abort", onParentAbort, { once: true });
  const timer = clock.timer(ms, () => controller.abort(late()));
  try {
    return await work(controller.signal);
  } finally {
    timer.cancel();
    parent.removeEventListener("abort", onParentAbort);
  }
}

/**
 * Runs `work` with a signal that aborts as soon as one of `parents` does. It listens to them only while `work` runs;
 * `AbortSignal.any` keeps all that listens to it in memory as long as none of them aborts.
 */
export async function withAnyOf<T>(
  parents: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (const parent of parents) parent.throwIfAborted();
  const controller = new AbortController();
  setMaxListeners(0, controller.signal); // One listener a call under way: many are no leak.
  const listeners = parents.map((parent) => {
    const onAbort = () => controller.abort(parent.reason);
    parent.addEventListener("abort", onAbort, { once: true });
    return () => parent.removeEventListener("abort", onAbort);
  });
  try {
    return await work(controller.signal);
  } finally {
    for (const unsubscribe of listeners) unsubscribe();
  }
}

/** Settles like `promise`, or rejects with the signal's reason if that comes first. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // No caller waits for it any more: its failure must not be an unhandled rejection.
    promise.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const settled = () => signal.removeEventListener("abort", onAbort);
    promise.then(
      (value) => {
        settled();
        resolve(value);
      },
      (error) => {
        settled();
        reject(error);
      },
    );
  });
}

/** `sleep` in terms of `timer`, shared by all clocks. */
export function sleepOn(clock: Pick<Clock, "timer">, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.timer(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** `deadline` in terms of `timer`, shared by all clocks. */
export function deadlineOn(clock: Pick<Clock, "timer">, ms: number, parent: AbortSignal): AbortSignal {
  if (parent.aborted) return parent;
  const controller = new AbortController();
  const onParentAbort = () => {
    timer.cancel();
    controller.abort(parent.reason);
  };
  const timer = clock.timer(ms, () => {
    parent.removeEventListener("abort", onParentAbort);
    controller.abort(new DeadlineError(ms));
  });
  parent.addEventListener("abort", onParentAbort, { once: true });
  return controller.signal;
}
