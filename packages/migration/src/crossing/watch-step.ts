/**
 * Watches over one step of a crossing: ends it at its limit, and reports what it waits for: at once, when that
 * changes, and every {@link repeatMs}, also while the step is inside a call that does not return.
 */
import { type Clock, DeadlineError, withDeadline } from "@longshore/runtime";
import { boundedWait, type Wait, type WaitReport, waitWords } from "./wait.ts";

/** A wait that lasts is reported again after this time, in milliseconds. */
export const repeatMs = 30_000;
/** A step that has not said what it waits for is reported with its default wait after this time, in milliseconds. */
const silentMs = 1000;
/** Changes of what is waited for are reported at most this often, in milliseconds. */
const changesMs = 1000;

/** Which step, and how long it may take. */
export interface StepOptions {
  readonly step: string;
  readonly nodeName: string | undefined;
  /** In milliseconds. */
  readonly limitMs: number;
  /** What the step waits for unless it says otherwise. */
  readonly wait: Wait;
  readonly onWaiting: (report: WaitReport) => void;
}

/** How a step says what it waits for. */
export type OnWaiting = (wait: Wait) => void;

/** A step did not come to its end in time. The run can be begun again. */
export class StepTimeoutError extends Error {
  override readonly name = "StepTimeoutError";
  readonly step: string;
  readonly nodeName: string | undefined;
  readonly wait: Wait;
  constructor({ step, nodeName, limitMs }: StepOptions, wait: Wait, cause: unknown) {
    const where = nodeName === undefined ? "" : ` on node ${nodeName}`;
    super(`"${step}"${where} still waits after ${limitMs / 1000} s for ${waitWords(wait)}`, { cause });
    this.step = step;
    this.nodeName = nodeName;
    this.wait = wait;
  }
}

/** Does the work of a step. @throws StepTimeoutError, or what the work throws */
export async function watchStep<T>(
  clock: Clock,
  options: StepOptions,
  parent: AbortSignal,
  work: (onWaiting: OnWaiting, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const watch = new StepWatch(clock, options);
  let late = false;
  const isLate = () => {
    late = true;
    return new DeadlineError(options.limitMs);
  };
  try {
    const within = (signal: AbortSignal) => work((wait) => watch.waitFor(wait), signal);
    return await withDeadline(clock, options.limitMs, parent, within, isLate);
  } catch (error) {
    // By the flag, not by the class: work that is aborted may throw an error of its own.
    if (!late) throw error;
    throw new StepTimeoutError(options, watch.current, error instanceof DeadlineError ? undefined : error);
  } finally {
    watch.end();
  }
}

class StepWatch {
  current: Wait;
  readonly #clock: Clock;
  readonly #options: StepOptions;
  readonly #startMs: number;
  #sinceMs: number;
  #reportedMs: number | undefined;
  #reportedText = "";
  #timer: { cancel(): void };

  constructor(clock: Clock, options: StepOptions) {
    this.#clock = clock;
    this.#options = options;
    this.current = options.wait;
    this.#startMs = clock.monotonicMs();
    this.#sinceMs = this.#startMs;
    this.#timer = clock.timer(silentMs, () => this.#report());
  }

  waitFor(all: Wait): void {
    const wait = boundedWait(all);
    const nowMs = this.#clock.monotonicMs();
    // A new reason for the same objects does not restart the time: they are still being waited for.
    if (identity(wait) !== identity(this.current)) this.#sinceMs = nowMs;
    this.current = wait;
    const isDue = this.#reportedMs === undefined || nowMs - this.#reportedMs >= changesMs;
    if (isDue && JSON.stringify(wait) !== this.#reportedText) this.#report();
  }

  end(): void {
    this.#timer.cancel();
  }

  #report(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#timer.cancel();
    this.#timer = this.#clock.timer(repeatMs, () => this.#report());
    this.#reportedMs = nowMs;
    this.#reportedText = JSON.stringify(this.current);
    this.#options.onWaiting({
      wait: this.current,
      waitedMs: nowMs - this.#sinceMs,
      leftMs: Math.max(0, this.#startMs + this.#options.limitMs - nowMs),
    });
  }
}

/** Which objects are waited for, whatever the reasons. */
function identity({ subjects }: Wait): string {
  return JSON.stringify(subjects.map(({ kind, namespace, name }) => [kind, namespace, name]));
}
