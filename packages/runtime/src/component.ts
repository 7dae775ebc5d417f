/**
 * The life cycle of everything that runs: `start(env, options) → Component`. `stop` resolves once
 * all work has ended; a crash is dropping the component. Constructors do no I/O.
 */
import { setMaxListeners } from "node:events";
import { type BackoffPolicy, backoffMs } from "./backoff.ts";
import type { Clock } from "./clock/clock.ts";
import type { Logger } from "./logger/logger.ts";
import type { Meter } from "./meter/meter.ts";
import type { Random } from "./random.ts";

/** Something that runs until it is stopped. */
export interface Component {
  /** Ends all work and resolves when it has ended. Calling it again is harmless. */
  stop(): Promise<void>;
}

/** The seams that every component gets. */
export interface RuntimeEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly meter: Meter;
}

/** Collects the background work of one component, so that `stop` can await all of it. */
export class TaskGroup implements Component {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #onError: (error: unknown) => void;

  /** @param onError called when a task fails for another reason than being stopped */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    setMaxListeners(0, this.#controller.signal); // One listener a running call: many are no leak.
  }

  /** Aborts when the group is stopped. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Runs `task` until it ends or the group is stopped. */
  spawn(task: (signal: AbortSignal) => Promise<void>): void {
    if (this.signal.aborted) return;
    // In an async function, so that a task that throws at once is reported like any other.
    const running: Promise<void> = (async () => task(this.signal))()
      .catch((error: unknown) => {
        if (!this.signal.aborted) this.#onError(error);
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async stop(): Promise<void> {
    this.#controller.abort(new StoppedError());
    while (this.#running.size > 0) await Promise.allSettled([...this.#running]);
  }
}

/** The reason of the signal of a component that is being stopped. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";
  constructor() {
    super("stopped");
  }
}

/** How a periodic loop runs. */
export interface PeriodicOptions {
  readonly name: string;
  /** Pause between the end of one pass and the start of the next, in milliseconds. */
  readonly periodMs: number;
  /** Pauses after failed passes; default 1 s to 1 min, never below the period. */
  readonly backoff?: BackoffPolicy;
}

/** Runs `pass` again and again until `signal` aborts; a failed pass is logged and backed off. */
export async function periodically(
  env: Pick<RuntimeEnv, "clock" | "random" | "logger">,
  options: PeriodicOptions,
  signal: AbortSignal,
  pass: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const backoff = options.backoff ?? { initialMs: 1000, maximumMs: 60_000 };
  let failures = 0;
  while (!signal.aborted) {
    let pauseMs = options.periodMs;
    try {
      await pass(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      pauseMs = Math.max(pauseMs, backoffMs(backoff, failures, env.random));
      env.logger.warn(`${options.name} failed`, { error, retryInMs: pauseMs });
    }
    await env.clock.sleep(pauseMs, signal).catch(() => {});
  }
}

/** Stops components in reverse order of their start, all of them, and reports the first failure. */
export async function stopAll(components: readonly Component[]): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const component of [...components].reverse()) {
    try {
      await component.stop();
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}
