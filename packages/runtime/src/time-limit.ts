/**
 * How long something may take that rarely waits for more than one thing. A signal with a deadline costs a controller, a
 * timer and a listener whether or not anybody waits; this costs a number until somebody does.
 */
import { type Clock, DeadlineError, type Timer, withDeadline } from "./clock.ts";

/** The time until a deadline on `clock`, which `signal` may end earlier. */
export class TimeLimit {
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #endsMs: number;

  /** @param ms from now on, in milliseconds */
  constructor(clock: Clock, ms: number, signal: AbortSignal) {
    this.signal = signal;
    this.#clock = clock;
    this.#ms = ms;
    this.#endsMs = clock.monotonicMs() + ms;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#endsMs - this.#clock.monotonicMs());
  }

  /** Calls `expire` with the {@link DeadlineError} when the time is over, unless the timer is cancelled before. */
  onEnd(expire: (error: DeadlineError) => void): Timer {
    return this.#clock.timer(this.leftMs, () => expire(this.#error()));
  }

  /**
   * Runs `work` with a signal that aborts when the time is over.
   * @throws DeadlineError that tells the whole time, or the reason of the signal
   */
  async within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await withDeadline(this.#clock, this.leftMs, this.signal, work);
    } catch (error) {
      const isEnd = error instanceof DeadlineError && this.leftMs === 0 && !this.signal.aborted;
      throw isEnd ? this.#error() : error;
    }
  }

  #error(): DeadlineError {
    return new DeadlineError(this.#ms);
  }
}
