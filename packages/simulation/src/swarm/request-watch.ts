/** Finds hot loops: requests of one component for one object are bounded, whatever goes wrong. */

const windowMs = 60_000;

/** Counts requests in windows of a virtual minute. */
export class RequestWatch {
  readonly #limit: number;
  readonly #onBreak: (what: string) => void;
  readonly #counts = new Map<string, number>();
  #window = 0;

  /**
   * @param limit most requests of a component and verb for an object in a minute
   * @param onBreak called once in a window with who asked too often for what
   */
  constructor(limit: number, onBreak: (what: string) => void) {
    this.#limit = limit;
    this.#onBreak = onBreak;
  }

  /** A request at this time. */
  asked(component: string, verb: string, object: string, nowMs: number): void {
    const window = Math.floor(nowMs / windowMs);
    if (window !== this.#window) this.#counts.clear();
    this.#window = window;
    const key = `${component}: ${verb} ${object}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    if (count === this.#limit + 1) this.#onBreak(`${key}: more than ${this.#limit} requests in a minute`);
  }
}
