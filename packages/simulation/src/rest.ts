/**
 * Hours in which nothing much happens: the programs of the cluster work at long intervals, and go on as before at once when
 * the rest is over.
 */
import { type Clock, withAnyOf } from "@longshore/runtime";

/** How long a program that rests waits between two pieces of work, in milliseconds. */
const programRestMs = 10 * 60_000;

/** Whether the cluster rests. */
export class Rest {
  readonly #clock: Clock;
  #ends: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#ends !== undefined;
  }

  /** Rests for so many milliseconds. */
  async during(ms: number, signal: AbortSignal): Promise<void> {
    const ends = new AbortController();
    this.#ends = ends;
    await this.#clock.sleep(ms, signal).finally(() => {
      this.#ends = undefined;
      ends.abort(new Error("the rest is over"));
    });
  }

  /** Waits `ms`, or `restingMs` while the cluster rests, and no longer than that. */
  async sleep(ms: number, restingMs: number, signal: AbortSignal): Promise<void> {
    const ends = this.#ends?.signal;
    if (ends === undefined) return this.#clock.sleep(ms, signal);
    await withAnyOf([signal, ends], (either) => this.#clock.sleep(restingMs, either)).catch(() => {});
    signal.throwIfAborted();
  }

  /** A clock for programs: what they wait takes longer while the cluster rests. */
  clock(): Clock {
    const clock = this.#clock;
    return {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      timer: (ms, fire) => clock.timer(ms, fire),
      deadline: (ms, parent) => clock.deadline(ms, parent),
      sleep: (ms, signal) => this.sleep(ms, Math.max(ms, programRestMs), signal),
    };
  }
}
