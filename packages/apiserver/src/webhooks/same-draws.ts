/** Chance and time that are the same each time a request is handled: its object has one uid, one name and one time. */
import type { Clock, Random } from "@longshore/runtime";

/** Draws again what it has drawn, from {@link SameDraws.begin} on in the same order for each purpose. */
export class SameDraws implements Random {
  readonly #random: Random;
  readonly #drawn = new Map<string, unknown[]>();
  readonly #positions = new Map<string, number>();

  constructor(random: Random) {
    this.#random = random;
  }

  begin(): void {
    this.#positions.clear();
  }

  below(bound: number, purpose: string): number {
    return this.#draw(`${purpose} ${bound}`, () => this.#random.below(bound, purpose));
  }

  uuid(purpose: string): string {
    return this.#draw(purpose, () => this.#random.uuid(purpose));
  }

  fork(label: string): Random {
    return this.#random.fork(label);
  }

  #draw<T>(key: string, draw: () => T): T {
    const drawn = this.#drawn.get(key) ?? [];
    this.#drawn.set(key, drawn);
    const position = this.#positions.get(key) ?? 0;
    this.#positions.set(key, position + 1);
    if (position === drawn.length) drawn.push(draw());
    return drawn[position] as T;
  }
}

/** The clock, whose wall time stands still. */
export function sameTime(clock: Clock): Clock {
  const now = clock.now();
  return {
    now: () => now,
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    timer: (ms, fire) => clock.timer(ms, fire),
    deadline: (ms, parent) => clock.deadline(ms, parent),
  };
}
