/** The clock of one process among several: it may run fast or slow, show another time of day, and its process may be stopped. */
import { type Clock, deadlineOn, sleepOn, type Timer } from "@longshore/runtime";

/** How the process's clock differs. */
export interface ClockSkew {
  /** Milliseconds of this clock in one of the others'. */
  readonly rate: number;
  readonly wallOffsetMs: number;
}

/** A view of `base`. While the process is stopped, time passes but no timer fires; due timers fire afterwards. */
export class ProcessClock implements Clock {
  readonly #base: Clock;
  readonly #skew: ClockSkew;
  #stoppedUntilMs = 0;

  constructor(base: Clock, skew: ClockSkew) {
    this.#base = base;
    this.#skew = skew;
  }

  /** Stops the process for so long, as SIGSTOP does. */
  stopFor(ms: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#base.monotonicMs() + ms);
  }

  /** Resolves when the process runs: what every answer from outside has to wait for. */
  async running(): Promise<void> {
    while (this.#leftMs > 0) await this.#base.sleep(this.#leftMs, new AbortController().signal);
  }

  now(): Date {
    return new Date(this.#base.now().getTime() + this.#skew.wallOffsetMs);
  }

  monotonicMs(): number {
    return this.#base.monotonicMs() * this.#skew.rate;
  }

  timer(ms: number, fire: () => void): Timer {
    let isCancelled = false;
    const whenRunning = (): void => {
      if (isCancelled) return;
      if (this.#leftMs > 0) this.#base.timer(this.#leftMs, whenRunning);
      else fire();
    };
    this.#base.timer(ms / this.#skew.rate, whenRunning);
    return {
      cancel() {
        isCancelled = true;
      },
    };
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  deadline(ms: number, parent: AbortSignal): AbortSignal {
    return deadlineOn(this, ms, parent);
  }

  get #leftMs(): number {
    return this.#stoppedUntilMs - this.#base.monotonicMs();
  }
}
