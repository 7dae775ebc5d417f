/** Keeps one client from flooding the API server: a token bucket on the clock seam. */
import type { Clock } from "@longshore/runtime";

/** How many requests a client may send. */
export interface FlowControl {
  /** Requests a second in the long run. */
  readonly qps: number;
  /** Requests at once. */
  readonly burst: number;
}

/** Grants tokens in the order of the calls. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #limits: FlowControl;
  /** When the bucket was, or will be, exactly empty, on the monotonic clock. */
  #emptyMs: number;

  constructor(clock: Clock, limits: FlowControl) {
    this.#clock = clock;
    this.#limits = limits;
    this.#emptyMs = clock.monotonicMs() - this.#fullMs;
  }

  /** Resolves when the request may be sent; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<void> {
    const waitMs = this.reserve();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
  }

  /** Reserves a token. Returns the time to wait for it, in milliseconds. */
  reserve(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#emptyMs = Math.max(this.#emptyMs, nowMs - this.#fullMs) + 1000 / this.#limits.qps;
    return Math.max(0, this.#emptyMs - nowMs);
  }

  /** Time in which an empty bucket fills. */
  get #fullMs(): number {
    return (this.#limits.burst * 1000) / this.#limits.qps;
  }
}
