/** A clock that stands still, but for the jump that a test asks for: so a request runs out of time at any check. */
import { type Clock, VirtualClock } from "@longshore/runtime";

/** Longer than any request may take, in milliseconds. */
const jumpMs = 1_000_000;

/** A virtual clock that jumps past the time limit of a request when a test asks for it. */
export class SlowClock implements Clock {
  readonly #clock = new VirtualClock();
  #jumpedMs = 0;
  #readingsLeft = Number.POSITIVE_INFINITY;
  #everyReadings = Number.POSITIVE_INFINITY;
  /** How often it has been read. */
  readings = 0;

  /** The clock jumps at the reading after so many; the first of a request is its beginning. */
  jumpAfter(readings: number): void {
    this.#readingsLeft = readings;
    this.#everyReadings = Number.POSITIVE_INFINITY;
  }

  /** The clock jumps again and again, with so many readings in between. */
  jumpEach(readings: number): void {
    this.#readingsLeft = this.#everyReadings = readings;
  }

  monotonicMs(): number {
    this.readings++;
    if (this.#readingsLeft-- === 0) {
      this.#jumpedMs += jumpMs;
      this.#readingsLeft = this.#everyReadings;
    }
    return this.#clock.monotonicMs() + this.#jumpedMs;
  }

  /** Advances the clock by `ms` milliseconds and runs the timers that are due. */
  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  readonly now: Clock["now"] = () => this.#clock.now();
  readonly sleep: Clock["sleep"] = (ms, signal) => this.#clock.sleep(ms, signal);
  readonly timer: Clock["timer"] = (ms, fire) => this.#clock.timer(ms, fire);
  readonly deadline: Clock["deadline"] = (ms, parent) => this.#clock.deadline(ms, parent);
}
