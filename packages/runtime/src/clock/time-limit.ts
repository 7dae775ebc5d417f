/**
 * A time limit for work that rarely waits for more than one thing. A signal with a deadline always costs a controller,
 * a timer and a listener; this costs one number until something waits.
 */
import { type Clock, DeadlineError, type Timer, withDeadline } from "./clock.ts";

/** The time until a deadline on `clock`, which `signal` may end earlier. */
export class TimeLimit {
  readonly signal: AbortSignal;
  /** The whole time, in milliseconds. */
  readonly ms: number;
  readonly #clock: Clock;
  readonly #endsMs: number;
  #late: DeadlineError | undefined;

  /** @param ms from now on, in milliseconds */
  constructor(clock: Clock, ms: number, signal: AbortSignal) {
    this.signal = signal;
    this.#clock = clock;
    this.ms = ms;
    this.#endsMs = clock.monotonicMs() + ms;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#endsMs - this.#clock.monotonicMs());
  }

  /** @throws DeadlineError when no time is left, even if the timer for it is late. */
  throwIfEnded(): void {
    if (this.leftMs === 0) throw this.#error();
  }

  /** Calls `expire` with the {@link DeadlineError} when the time is over, unless the timer is cancelled before. */
  onEnd(expire: (error: DeadlineError) => void): Timer {
    return this.#clock.timer(this.leftMs, () => expire(this.#error()));
  }

  /**
   * Runs `work` with a signal that aborts when the time is over.
   * @throws DeadlineError that names the whole time, or the reason of the signal
   */
  within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline(this.#clock, this.leftMs, this.signal, work, () => this.#error());
  }

  /** True of the error with which this limit has ended something; no other deadline is mistaken for it. */
  hasEnded(error: unknown): boolean {
    return error !== undefined && error === this.#late;
  }

  #error(): DeadlineError {
    this.#late ??= new DeadlineError(this.ms);
    return this.#late;
  }
}
