/**
 * Keys that wait to be reconciled.
 *
 *     add ──► waiting ──► running ──► settled
 *              ▲  ▲          │  └─ added meanwhile ──► waiting
 *              │  └─ delayed ◄── requeueAfterMs, or failed (back-off)
 *              └── addAfter
 *
 * Invariants
 *  - A key waits at most once and runs at most once at a time; a key added while it runs, runs again.
 *  - No key is lost: a failed one comes back with growing delays, unless no retry can help.
 *  - Changed keys do not wait behind keys of a first list or resync, and those do not starve either.
 *  - Memory is bounded by the number of keys, not by the number of events.
 */
import { setMaxListeners } from "node:events";
import {
  type BackoffPolicy,
  backoffMs,
  type Component,
  DeadlineError,
  type RuntimeEnv,
  StoppedError,
  TaskGroup,
  type Timer,
} from "@longshore/runtime";
import { type FlowControl, TokenBucket } from "../http/flow-control.ts";
import { isConflict } from "../kube-client.ts";
import type { KubeEnv } from "../kube-env.ts";
import { type QueueMetrics, queueMetrics } from "./queue-metrics.ts";
import { type Priority, WaitingKeys } from "./waiting-keys.ts";

/** What a reconcile asks for; nothing: the next event will wake the key. */
export interface ReconcileResult {
  /** Run the key again after this time, in milliseconds, even without an event. */
  readonly requeueAfterMs?: number;
}

/** Done: no requeue. */
export const settled: ReconcileResult = {};

/** Thrown by a reconcile when no retry can help before the object changes. */
export class TerminalError extends Error {
  override readonly name: string = "TerminalError";
}

/** One run of a key. */
export interface Pass {
  /** The key that was woken; what it means is the controller's own. */
  readonly key: string;
  /** Aborts when the controller stops or the time of the pass is over: hand it to every call. */
  readonly signal: AbortSignal;
}

/** Brings the object of the pass's key to its desired state. */
export type Reconcile = (pass: Pass) => Promise<ReconcileResult>;

/** How a queue works. */
export interface WorkQueueOptions {
  /** Names the queue in logs and metrics. */
  readonly name: string;
  /** Keys that run at the same time; default 1. */
  readonly workers?: number;
  /** Delays after failures of one key; default 200 ms to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** All failed keys together come back no faster than this; default 10 a second after the first 100, as in client-go. */
  readonly retryRate?: FlowControl;
  /** Deadline of one reconcile, in milliseconds; none when left out. */
  readonly reconcileTimeoutMs?: number;
  /** On `stop`, running reconciles may end by themselves for this long before their signal aborts; default 0. */
  readonly drainMs?: number;
  /** Never called twice at a time for one key, nor from within `add`; `workers` calls at most at once. */
  readonly reconcile: Reconcile;
}

/**
 * A running queue. While keys in the background wait, changed ones get three turns of four; each kind is in the order of
 * arrival. `stop` drops what waits, lets running reconciles end for `drainMs`, aborts their signals and resolves once they
 * have ended; from then on `add` and `addAfter` do nothing.
 */
export interface WorkQueue extends Component {
  /** Runs the key as soon as a worker is free; in the background what no event asks for: a first list, a resync. */
  add(key: string, priority?: Priority): void;
  /** Runs the key after `ms` milliseconds; of several calls the earliest time counts. */
  addAfter(key: string, ms: number): void;
  /** Forgets the key's failures and its retry: its object is gone. */
  forget(key: string): void;
  /** Keys that wait for a worker (not those that are delayed or run). */
  readonly length: number;
}

/** The seams of a queue; with `ownWrites` each pass begins once the caches show what was written before. */
export type QueueEnv = RuntimeEnv & Pick<KubeEnv, "ownWrites">;

/**
 * Starts a queue and its workers. A reconcile that throws is logged and runs again with growing delays; after a
 * {@link TerminalError} the key runs again only when it is added. A result without `requeueAfterMs` ends the work on it.
 */
export function startWorkQueue(env: QueueEnv, options: WorkQueueOptions): WorkQueue {
  return new KeyedWorkQueue(env, options);
}

const DEFAULT_BACKOFF: BackoffPolicy = { initialMs: 200, maximumMs: 300_000, jitter: 0.1 };

const DEFAULT_RETRY_RATE: FlowControl = { qps: 10, burst: 100 };

interface Delay {
  readonly dueMs: number;
  readonly timer: Timer;
}

/**
 * A pass with a signal of its own: a shared one would collect a listener from every call of every worker. It is made when
 * it is first asked for, since most passes find nothing to do and call nothing.
 */
class RunningPass implements Pass {
  readonly key: string;
  /** When it began, on the monotonic clock. */
  readonly startedMs: number;
  #controller: AbortController | undefined;
  /** Why it was aborted; undefined: it was not. */
  #reason: Error | undefined;

  constructor(key: string, startedMs: number) {
    this.key = key;
    this.startedMs = startedMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      // A pass may have many calls under way, each with a listener.
      setMaxListeners(0, this.#controller.signal);
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get isStopped(): boolean {
    return this.#reason instanceof StoppedError;
  }

  /** The first reason counts. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}

class KeyedWorkQueue implements WorkQueue {
  readonly #env: QueueEnv;
  readonly #options: WorkQueueOptions;
  readonly #metrics: QueueMetrics;
  readonly #unread: { end(): void };
  readonly #tasks: TaskGroup;
  readonly #waiting = new WaitingKeys();
  readonly #retryBucket: TokenBucket;
  readonly #running = new Map<string, RunningPass>();
  /** Added while running: runs again. */
  readonly #again = new Map<string, Priority>();
  /** Keys added by `addAfter`. */
  readonly #delayed = new Map<string, Delay>();
  /** What the last pass of the key requested; void once the key runs again. */
  readonly #retries = new Map<string, Delay>();
  readonly #failures = new Map<string, number>();
  #stopping = false;
  #drained: (() => void) | undefined;

  constructor(env: QueueEnv, options: WorkQueueOptions) {
    this.#env = env;
    this.#options = options;
    this.#metrics = queueMetrics(env.meter, options.name);
    this.#unread = this.#metrics.running(() => this.#ages());
    this.#retryBucket = new TokenBucket(env.clock, options.retryRate ?? DEFAULT_RETRY_RATE);
    this.#tasks = new TaskGroup((error) => env.logger.error(`queue ${options.name} failed`, { error }));
  }

  get length(): number {
    return this.#waiting.size;
  }

  add(key: string, priority: Priority = "fresh"): void {
    if (this.#stopping) return;
    this.#metrics.added();
    if (this.#running.has(key)) {
      if (this.#again.get(key) !== "fresh") this.#again.set(key, priority);
      return;
    }
    this.#waiting.add(key, priority, this.#env.clock.monotonicMs());
    this.#metrics.depth(this.#waiting.size);
    this.#pump();
  }

  addAfter(key: string, ms: number): void {
    this.#delay(this.#delayed, key, ms);
  }

  forget(key: string): void {
    this.#failures.delete(key);
    this.#retries.get(key)?.timer.cancel();
    this.#retries.delete(key);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#waiting.clear();
    this.#again.clear();
    for (const delays of [this.#delayed, this.#retries]) {
      for (const { timer } of delays.values()) timer.cancel();
      delays.clear();
    }
    await this.#drain();
    for (const pass of this.#running.values()) pass.abort(new StoppedError());
    await this.#tasks.stop();
    this.#unread.end();
  }

  *#ages(): Iterable<number> {
    const nowMs = this.#env.clock.monotonicMs();
    for (const { startedMs } of this.#running.values()) yield nowMs - startedMs;
  }

  async #drain(): Promise<void> {
    const drainMs = this.#options.drainMs ?? 0;
    if (drainMs <= 0 || this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#env.clock.timer(drainMs, resolve);
      this.#drained = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #delay(delays: Map<string, Delay>, key: string, ms: number): void {
    if (this.#stopping) return;
    const dueMs = this.#env.clock.monotonicMs() + Math.max(0, ms);
    const present = delays.get(key);
    if (present !== undefined) {
      if (present.dueMs <= dueMs) return;
      present.timer.cancel();
    }
    const timer = this.#env.clock.timer(Math.max(0, ms), () => {
      delays.delete(key);
      this.add(key);
    });
    delays.set(key, { dueMs, timer });
  }

  #pump(): void {
    const workers = this.#options.workers ?? 1;
    while (this.#running.size < workers && !this.#stopping) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      const { key, sinceMs } = next;
      const pass = new RunningPass(key, this.#env.clock.monotonicMs());
      this.#running.set(key, pass);
      this.#retries.get(key)?.timer.cancel();
      this.#retries.delete(key);
      this.#metrics.depth(this.#waiting.size);
      this.#metrics.waited(this.#env.clock.monotonicMs() - sinceMs);
      this.#tasks.spawn(() => this.#run(pass));
    }
  }

  async #run(pass: RunningPass): Promise<void> {
    const { key, startedMs } = pass;
    try {
      // One turn later, so that `add` never runs a reconcile before it returns.
      await Promise.resolve();
      const result = await this.#reconcile(pass);
      this.#failures.delete(key);
      if (result.requeueAfterMs !== undefined) this.#delay(this.#retries, key, result.requeueAfterMs);
    } catch (error) {
      if (!pass.isStopped) this.#onFailure(key, error);
    } finally {
      this.#metrics.worked(this.#env.clock.monotonicMs() - startedMs);
      this.#running.delete(key);
      if (this.#running.size === 0) this.#drained?.();
      const again = this.#again.get(key);
      this.#again.delete(key);
      if (again !== undefined) this.add(key, again);
      this.#pump();
    }
  }

  async #reconcile(pass: RunningPass): Promise<ReconcileResult> {
    const { reconcile, reconcileTimeoutMs } = this.#options;
    // Before the deadline begins: a slow cache must not use up the time of the pass.
    const { ownWrites } = this.#env;
    if (ownWrites !== undefined && !ownWrites.isAllSeen) await ownWrites.seen(pass);
    if (reconcileTimeoutMs === undefined) return reconcile(pass);
    const late = () => pass.abort(new DeadlineError(reconcileTimeoutMs));
    const timer = this.#env.clock.timer(reconcileTimeoutMs, late);
    try {
      return await reconcile(pass);
    } finally {
      timer.cancel();
    }
  }

  #onFailure(key: string, error: unknown): void {
    const { name, backoff = DEFAULT_BACKOFF } = this.#options;
    if (error instanceof TerminalError) {
      this.#failures.delete(key);
      this.#env.logger.error(`${name}: ${key} cannot be reconciled`, { key, error });
      return;
    }
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    // The longer of the two, as client-go's MaxOfRateLimiter.
    const retryInMs = Math.max(backoffMs(backoff, failures, this.#env.random), this.#retryBucket.reserve());
    // A conflict is part of normal work: the next pass reads the current state.
    const level = isConflict(error) ? "debug" : "warn";
    this.#env.logger[level](`${name}: ${key} failed`, { key, error, retryInMs: Math.round(retryInMs) });
    this.#metrics.retried();
    this.#delay(this.#retries, key, retryInMs);
  }
}
