/** A loop's alarm: set off by a change, or at the requested time. Several signals become one wake-up. */
import type { Clock } from "@longshore/runtime";

/** Wakes one loop. */
export class Wakeup {
  #dirty = true;
  #ring: () => void = () => {};

  /** Sets it off; while the loop is busy this is remembered once. */
  wake(): void {
    this.#dirty = true;
    this.#ring();
  }

  /** Resolves when set off, or after `ms` if given; rejects when `signal` aborts. */
  async wait(clock: Clock, ms: number | undefined, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#dirty) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : clock.timer(ms, () => end());
        const end = () => {
          timer?.cancel();
          signal.removeEventListener("abort", end);
          resolve();
        };
        this.#ring = end;
        signal.addEventListener("abort", end, { once: true });
      });
      this.#ring = () => {};
      signal.throwIfAborted();
    }
    this.#dirty = false;
  }
}
