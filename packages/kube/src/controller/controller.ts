/**
 * The shape of every controller: what wakes it, what it observes, a pure decision, small actions.
 *
 *     sources ──► queue ──► pass: observe ──► decide ──► action ──► …
 *
 * Invariants
 *  - A key runs in one pass at a time; what wakes it meanwhile makes it run again.
 *  - The first pass begins once all caches have synced, and no wake-up between the first list and the subscription is lost.
 *  - Each observation shows at least what the controller has written, if its environment tracks writes (`trackWrites`).
 *  - The first list and a resync delay no change.
 *  - A failed pass is retried with growing delays; a pass that does not end fails.
 */
import { type Component, periodically, stopAll, TaskGroup } from "@longshore/runtime";
import type { Priority } from "../queue/waiting-keys.ts";
import { type QueueEnv, startWorkQueue, type WorkQueue, type WorkQueueOptions } from "../queue/work-queue.ts";
import { type Step, type Steps, type WalkOptions, walkSteps } from "./pass.ts";
import type { Source, SyncedCache } from "./sources.ts";

/** A controller: its parts, and how it runs. */
export interface ControllerOptions<O, S extends Step>
  extends Steps<O, S>,
    Pick<WorkQueueOptions, "name" | "workers" | "backoff" | "retryRate" | "drainMs"> {
  /** What wakes it. */
  readonly sources: readonly Source[];
  /** Further caches that `observe` reads. */
  readonly caches?: readonly SyncedCache[];
  /** Deadline of one pass, in milliseconds; none when left out. */
  readonly passTimeoutMs?: number;
  /** All objects of its `forResource` sources are looked at again after this time, in milliseconds; never when left out. */
  readonly resyncMs?: number;
  /** A pass of more steps fails; default 32. */
  readonly stepsMax?: number;
}

/**
 * A running controller. What wakes a key before the caches have synced is kept until then; what wakes it after `stop` is
 * dropped. `stop` unsubscribes, lets running passes end for `drainMs`, aborts their signals and resolves once all have
 * ended; keys that wait are forgotten.
 */
export interface Controller extends Component {
  /** Runs a pass over the key as soon as a worker is free. */
  wake(key: string, priority?: Priority): void;
  /** Runs a pass over the key after `ms`, in milliseconds; of several calls the earliest counts. */
  wakeAfter(key: string, ms: number): void;
  /** Keys that wait for a worker or for the caches. */
  readonly length: number;
}

/**
 * Starts a controller; it waits for its caches in the background and works until it is stopped. A pass that throws is
 * logged and retried with growing delays; after a `TerminalError` the key rests until something wakes it.
 */
export function startController<O, S extends Step>(
  env: QueueEnv,
  options: ControllerOptions<O, S>,
): Controller {
  return new RunningController(env, options);
}

class RunningController<O, S extends Step> implements Controller {
  readonly #tasks: TaskGroup;
  readonly #queue: WorkQueue;
  readonly #unsubscribe: (() => void)[] = [];
  #areCachesSynced = false;
  /** Keys that were woken before the caches had synced. */
  readonly #early = new Map<string, Priority>();

  constructor(env: QueueEnv, options: ControllerOptions<O, S>) {
    const { name, workers, backoff, retryRate, drainMs } = options;
    this.#tasks = new TaskGroup((error) => env.logger.error(`controller ${name} failed`, { error }));
    this.#queue = startWorkQueue(env, {
      name,
      ...(workers === undefined ? {} : { workers }),
      ...(backoff === undefined ? {} : { backoff }),
      ...(retryRate === undefined ? {} : { retryRate }),
      ...(drainMs === undefined ? {} : { drainMs }),
      ...(options.passTimeoutMs === undefined ? {} : { reconcileTimeoutMs: options.passTimeoutMs }),
      reconcile: passOf(env, options),
    });
    this.#tasks.spawn((signal) => this.#start(env, options, signal));
  }

  get length(): number {
    return this.#queue.length + this.#early.size;
  }

  wake(key: string, priority: Priority = "fresh"): void {
    if (this.#areCachesSynced) this.#queue.add(key, priority);
    else if (this.#early.get(key) !== "fresh") this.#early.set(key, priority);
  }

  wakeAfter(key: string, ms: number): void {
    if (this.#areCachesSynced) this.#queue.addAfter(key, ms);
    // Early does no harm: the pass decides how long is left, and asks for the rest.
    else this.wake(key);
  }

  async stop(): Promise<void> {
    for (const end of this.#unsubscribe.splice(0)) end();
    await stopAll([this.#tasks, this.#queue]);
    this.#early.clear();
  }

  async #start(env: QueueEnv, options: ControllerOptions<O, S>, signal: AbortSignal): Promise<void> {
    const { sources, caches = [], resyncMs } = options;
    const read = new Set([...sources.flatMap((one) => one.caches), ...caches]);
    await Promise.all([...read].map((cache) => cache.synced(signal)));
    if (signal.aborted) return;
    this.#areCachesSynced = true;
    for (const [key, priority] of this.#early) this.#queue.add(key, priority);
    this.#early.clear();
    const queue = {
      wake: (key: string, priority?: Priority) => this.#queue.add(key, priority),
      forget: (key: string) => this.#queue.forget(key),
    };
    for (const one of sources) this.#unsubscribe.push(one.subscribe(queue));
    if (resyncMs === undefined) return;
    // The subscriptions have just woken every key, so the first resync is one period away.
    await env.clock.sleep(resyncMs, signal);
    await periodically(env, { name: `resync of ${options.name}`, periodMs: resyncMs }, signal, async () => {
      for (const one of sources) one.resync?.(queue.wake);
    });
  }
}

/** One pass, its steps counted. */
function passOf<O, S extends Step>(
  env: QueueEnv,
  options: ControllerOptions<O, S>,
): WorkQueueOptions["reconcile"] {
  const counter = env.meter.counter("longshore_controller_steps_total", {
    help: "Steps that the passes of a controller took",
    labels: ["controller", "step"],
  });
  const { name, stepsMax } = options;
  // A step that was never taken has the value 0, so that a reader of the metrics sees it.
  for (const step of Object.keys(options.actions)) counter.add(0, { controller: name, step });
  const walk: WalkOptions = {
    ...(stepsMax === undefined ? {} : { stepsMax }),
    onStep: ({ step }) => counter.add(1, { controller: name, step }),
    beforeObservation: async (pass) => env.ownWrites?.seen(pass),
  };
  return (pass) => walkSteps(options, pass, walk);
}
