/**
 * The virtual form of the {@link Clock} seam: time stands still until it is moved, by hand with
 * `advance` or by itself with `run`, which jumps to the next timer whenever all work is waiting.
 *
 * Invariants
 *  - Timers fire in the order of their due time, those of one instant in the order they were set.
 *  - Between two timers every promise chain has run to its end, so a run is deterministic as long
 *    as the code under it uses promises and this clock only, and no real I/O.
 */
import { type Clock, deadlineOn, sleepOn, type Timer } from "./clock.ts";

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  readonly fire: () => void;
  cancelled: boolean;
}

/** Thrown when the awaited work can no longer make progress, takes too long, or keeps time from passing. */
export class VirtualTimeError extends Error {
  override readonly name = "VirtualTimeError";
}

/** Far more than honest work sets for one instant: beyond it, something repeats without a pause. */
const timersPerInstantMax = 100_000;

/** How far a virtual run may go. */
export interface VirtualRunOptions {
  /** Virtual milliseconds after which the run is given up; default one day. */
  readonly limitMs?: number;
}

/** A clock whose time is moved by a test or a simulation. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #wallOffsetMs: number;
  readonly #heap: Entry[] = [];

  /** @param start wall time at the beginning; monotonic time begins at 0 */
  constructor(start: Date = new Date("2026-01-01T00:00:00Z")) {
    this.#wallOffsetMs = start.getTime();
  }

  now(): Date {
    return new Date(this.#wallOffsetMs + this.#nowMs);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  /** Lets the wall clock jump by `ms` (also backwards); durations and timers are not touched. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  timer(ms: number, fire: () => void): Timer {
    const entry: Entry = {
      dueMs: this.#nowMs + Math.max(0, ms),
      order: this.#order++,
      fire,
      cancelled: false,
    };
    this.#push(entry);
    return {
      cancel: () => {
        entry.cancelled = true;
      },
    };
  }

  deadline(ms: number, parent: AbortSignal): AbortSignal {
    return deadlineOn(this, ms, parent);
  }

  /** Moves time forward by `ms`, firing what falls due and letting all work settle in between. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await drain();
    for (;;) {
      const next = this.#peek();
      if (next === undefined || next.dueMs > untilMs) break;
      await this.#step();
    }
    this.#nowMs = untilMs;
  }

  /** Lets every promise chain run to its end without moving time. */
  settle(): Promise<void> {
    return drain();
  }

  /**
   * Moves time by itself until `work` settles, and settles like it.
   * @throws VirtualTimeError when nothing is left that could ever wake `work`, or past the limit
   */
  async run<T>(work: Promise<T>, options: VirtualRunOptions = {}): Promise<T> {
    const limitMs = this.#nowMs + (options.limitMs ?? 24 * 60 * 60 * 1000);
    let settled = false;
    const done = () => {
      settled = true;
    };
    work.then(done, done);
    for (;;) {
      await drain();
      if (settled) return work;
      const next = this.#peek();
      if (next === undefined) throw new VirtualTimeError("all work is waiting and no timer is set");
      if (next.dueMs > limitMs) throw new VirtualTimeError(`not done at ${limitMs} ms of virtual time`);
      await this.#step();
    }
  }

  /** Fires every timer of the next instant, letting work settle after each. */
  async #step(): Promise<void> {
    const first = this.#peek();
    if (first === undefined) return;
    this.#nowMs = first.dueMs;
    let fired = 0;
    for (let entry = this.#peek(); entry?.dueMs === this.#nowMs; entry = this.#peek()) {
      if (++fired > timersPerInstantMax) {
        throw new VirtualTimeError(
          `time stands still at ${this.#nowMs} ms: something repeats without a pause`,
        );
      }
      this.#pop();
      entry.fire();
      await drain();
    }
  }

  #peek(): Entry | undefined {
    // Cancelled entries stay until they come to the top: to find one inside a heap is a search.
    while (this.#heap[0]?.cancelled === true) this.#pop();
    return this.#heap[0];
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    heap.push(entry);
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!before(heap[i] as Entry, heap[parent] as Entry)) break;
      [heap[i], heap[parent]] = [heap[parent] as Entry, heap[i] as Entry];
      i = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let i = 0; ; ) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && before(heap[child] as Entry, heap[least] as Entry)) least = child;
      }
      if (least === i) return;
      [heap[i], heap[least]] = [heap[least] as Entry, heap[i] as Entry];
      i = least;
    }
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.dueMs !== b.dueMs ? a.dueMs < b.dueMs : a.order < b.order;
}

/** A macrotask turn: when it comes, the microtask queue has run empty. */
function drain(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
