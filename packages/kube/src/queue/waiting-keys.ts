/**
 * Keys that wait for a worker, in two lanes: changed keys, and background keys (the first
 * list, a resync). Each lane is served in the order of arrival; while both have keys, three of four turns go to the
 * fresh one, so that a hundred thousand objects of a first list delay no event, and no stream of events starves them.
 */

/** How soon a key is wanted. */
export type Priority = "fresh" | "background";

/** A key whose turn has come. */
export interface NextKey {
  readonly key: string;
  /** When it was added first, in milliseconds of the monotonic clock. */
  readonly sinceMs: number;
}

/** Turns of the fresh lane for one of the background. */
const FRESH_TURNS = 3;

/** A key is in one lane at most; added again, it keeps its time and moves to the better lane. */
export class WaitingKeys {
  readonly #lanes: Readonly<Record<Priority, Map<string, number>>> = {
    fresh: new Map(),
    background: new Map(),
  };
  /**
   * Where each lane is served. Kept from one turn to the next: a new iterator of a map passes every entry that was deleted
   * before its first, which makes emptying a long lane quadratic.
   */
  readonly #next: Record<Priority, MapIterator<[string, number]> | undefined> = {
    fresh: undefined,
    background: undefined,
  };
  /** Turns of the fresh lane since the last of the other. */
  #turns = 0;

  get size(): number {
    return this.#lanes.fresh.size + this.#lanes.background.size;
  }

  add(key: string, priority: Priority, nowMs: number): void {
    const { fresh, background } = this.#lanes;
    if (fresh.has(key)) return;
    const sinceMs = background.get(key);
    if (sinceMs !== undefined && priority === "background") return;
    background.delete(key);
    this.#lanes[priority].set(key, sinceMs ?? nowMs);
  }

  /** Takes the key whose turn it is; undefined when none waits. */
  take(): NextKey | undefined {
    const { fresh, background } = this.#lanes;
    const isBackgroundsTurn = fresh.size === 0 || (background.size > 0 && this.#turns >= FRESH_TURNS);
    this.#turns = isBackgroundsTurn ? 0 : this.#turns + 1;
    return this.#takeFrom(isBackgroundsTurn ? "background" : "fresh");
  }

  #takeFrom(name: Priority): NextKey | undefined {
    const lane = this.#lanes[name];
    if (lane.size === 0) return undefined;
    this.#next[name] ??= lane.entries();
    const first = this.#next[name].next();
    if (first.done === true) {
      // It has ended before: the keys came later.
      this.#next[name] = undefined;
      return this.#takeFrom(name);
    }
    const [key, sinceMs] = first.value;
    lane.delete(key);
    return { key, sinceMs };
  }

  clear(): void {
    this.#lanes.fresh.clear();
    this.#lanes.background.clear();
  }
}
