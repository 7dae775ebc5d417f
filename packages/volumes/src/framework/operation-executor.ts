/**
 * The operation executor: runs operations on volumes in the background, never two that are in each
 * other's way, and keeps a failed one from being repeated before its back-off has passed.
 * Source: docs/behaviour/node-agent.md 7.1 (the preferred rules, not the 1.20 quirks).
 *
 * Invariants
 *  - Of all operations whose keys match, at most one runs.
 *  - Success forgets; failure doubles the delay; an operation of another name resets it.
 *  - Nothing is remembered longer than it can matter: a record whose back-off is long over is dropped.
 */
import {
  type BackoffPolicy,
  backoffMs,
  type Component,
  type RuntimeEnv,
  TaskGroup,
} from "@longshore/runtime";

/** What an operation works on. A part left out matches any; an empty volume name conflicts with nothing. */
export interface OperationKey {
  readonly volumeName: string;
  readonly podName?: string | undefined;
  readonly nodeName?: string | undefined;
}

/** Outcome of a request to start an operation. */
export type StartResult =
  | { readonly kind: "started" /** Settles when it ended; never rejects. */; readonly done: Promise<void> }
  /** An operation in the way is running. */
  | { readonly kind: "pending" }
  /** The same operation failed and has to wait, in milliseconds. */
  | { readonly kind: "backoff"; readonly retryInMs: number };

/** Whether an operation could start. */
export type StartCheck = { readonly kind: "free" } | Exclude<StartResult, { readonly kind: "started" }>;

/** How an operation ended. */
export interface OperationEnd {
  readonly key: OperationKey;
  readonly operationName: string;
  /** Undefined: it succeeded. */
  readonly error: unknown;
  /** After a failure: milliseconds until it may be repeated. */
  readonly retryInMs: number;
}

/** Runs operations. */
export interface OperationExecutor extends Component {
  /** Starts `run` unless something is in its way. */
  startOperation(
    key: OperationKey,
    operationName: string,
    run: (signal: AbortSignal) => Promise<void>,
  ): StartResult;
  /** What {@link startOperation} would answer now. */
  check(key: OperationKey, operationName: string): StartCheck;
  /** True while an operation with a matching key runs. */
  isOperationPending(key: OperationKey): boolean;
  /** Operations running now. */
  readonly running: number;
}

/** Options of {@link createOperationExecutor}. */
export interface OperationExecutorOptions {
  /** Default 500 ms doubling to 2 min 2 s. */
  readonly backoff?: BackoffPolicy;
  /** Called at every end of an operation; must not throw. */
  readonly onEnd?: (end: OperationEnd) => void;
}

/** The back-off of volume operations. */
export const operationBackoff: BackoffPolicy = { initialMs: 500, maximumMs: 122_000 };

interface Operation {
  readonly key: OperationKey;
  name: string;
  running: boolean;
  failures: number;
  /** Monotonic time until which the same operation has to wait. */
  retryAtMs: number;
}

/** Makes an executor; `stop` aborts what runs and waits for it. */
export function createOperationExecutor(
  env: Pick<RuntimeEnv, "clock" | "logger">,
  options: OperationExecutorOptions = {},
): OperationExecutor {
  return new Executor(env, options);
}

class Executor implements OperationExecutor {
  readonly #env: Pick<RuntimeEnv, "clock" | "logger">;
  readonly #options: OperationExecutorOptions;
  readonly #backoff: BackoffPolicy;
  readonly #tasks: TaskGroup;
  readonly #byVolume = new Map<string, Operation[]>();
  #running = 0;
  #lastPruneMs = 0;

  constructor(env: Pick<RuntimeEnv, "clock" | "logger">, options: OperationExecutorOptions) {
    this.#env = env;
    this.#options = options;
    this.#backoff = options.backoff ?? operationBackoff;
    this.#tasks = new TaskGroup((error) => env.logger.error("operation bookkeeping failed", { error }));
  }

  get running(): number {
    return this.#running;
  }

  isOperationPending(key: OperationKey): boolean {
    return this.#matching(key).some((operation) => operation.running);
  }

  check(key: OperationKey, operationName: string): StartCheck {
    const matching = this.#matching(key);
    if (matching.some((operation) => operation.running)) return { kind: "pending" };
    const same = matching.find((operation) => operation.name === operationName);
    const waitMs = (same?.retryAtMs ?? 0) - this.#env.clock.monotonicMs();
    return waitMs > 0 ? { kind: "backoff", retryInMs: waitMs } : { kind: "free" };
  }

  startOperation(
    key: OperationKey,
    operationName: string,
    run: (signal: AbortSignal) => Promise<void>,
  ): StartResult {
    this.#prune(this.#env.clock.monotonicMs());
    const check = this.check(key, operationName);
    if (check.kind !== "free") return check;
    const matching = this.#matching(key);
    const same = matching.find((operation) => operation.name === operationName);
    // A failure of another operation on this volume does not delay this one: its back-off is dropped.
    for (const other of matching) if (other !== same) this.#drop(other);
    const operation = same ?? { key, name: operationName, running: false, failures: 0, retryAtMs: 0 };
    if (same === undefined) this.#keep(operation);
    operation.running = true;
    this.#running++;
    let resolveDone = () => {};
    const done = new Promise<void>((resolve) => {
      resolveDone = resolve;
    });
    this.#tasks.spawn(async (signal) => {
      let failure: { readonly error: unknown } | undefined;
      try {
        await run(signal);
      } catch (error) {
        failure = { error };
      }
      this.#end(operation, failure);
      resolveDone();
    });
    // A stopped group runs nothing: `done` would never settle.
    if (this.#tasks.signal.aborted) {
      this.#running--;
      this.#drop(operation);
      resolveDone();
    }
    return { kind: "started", done };
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    this.#byVolume.clear();
  }

  #end(operation: Operation, failure: { readonly error: unknown } | undefined): void {
    operation.running = false;
    this.#running--;
    let retryInMs = 0;
    if (failure === undefined) {
      this.#drop(operation);
    } else {
      operation.failures++;
      retryInMs = backoffMs(this.#backoff, operation.failures);
      operation.retryAtMs = this.#env.clock.monotonicMs() + retryInMs;
    }
    if (this.#tasks.signal.aborted) return;
    this.#options.onEnd?.({
      key: operation.key,
      operationName: operation.name,
      error: failure?.error,
      retryInMs,
    });
  }

  #matching(key: OperationKey): readonly Operation[] {
    if (key.volumeName === "") return [];
    return (this.#byVolume.get(key.volumeName) ?? []).filter(
      (operation) =>
        partMatches(operation.key.podName, key.podName) && partMatches(operation.key.nodeName, key.nodeName),
    );
  }

  #keep(operation: Operation): void {
    const list = this.#byVolume.get(operation.key.volumeName);
    if (list === undefined) this.#byVolume.set(operation.key.volumeName, [operation]);
    else list.push(operation);
  }

  #drop(operation: Operation): void {
    const rest = (this.#byVolume.get(operation.key.volumeName) ?? []).filter((other) => other !== operation);
    if (rest.length === 0) this.#byVolume.delete(operation.key.volumeName);
    else this.#byVolume.set(operation.key.volumeName, rest);
  }

  /** Drops failed operations that were not retried for longer than the maximum back-off. */
  #prune(nowMs: number): void {
    if (nowMs - this.#lastPruneMs < this.#backoff.maximumMs) return;
    this.#lastPruneMs = nowMs;
    for (const operations of [...this.#byVolume.values()]) {
      for (const operation of operations) {
        if (!operation.running && nowMs - operation.retryAtMs > this.#backoff.maximumMs)
          this.#drop(operation);
      }
    }
  }
}

/** A part that is absent or empty is a wildcard. */
function partMatches(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === "" || b === "" || a === b;
}
