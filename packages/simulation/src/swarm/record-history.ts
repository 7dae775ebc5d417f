/**
 * Whether what pods wrote and read is linearizable. A volume holds a register that counts up: a write adds the next number, a
 * read finds the last one. A write that was not acknowledged may have taken effect at any time, or never.
 */

interface Writing {
  readonly number: number;
  readonly fromMs: number;
  /** When it was acknowledged; undefined: never. */
  untilMs?: number;
}

/** All that was written to and read from the volumes of one world. */
export class RecordHistory {
  readonly #volumes = new Map<string, Writing[]>();
  /** How often another volume, which holds nothing, has come in place of the one of this name. */
  readonly #emptied = new Map<string, number>();
  readonly #onBreak: (what: string) => void;

  /** @param onBreak called with what no order of the writes and reads explains */
  constructor(onBreak: (what: string) => void) {
    this.#onBreak = onBreak;
  }

  /** By which name the volume is known here that a program sees as this one now. */
  nameOf(volume: string): string {
    const times = this.#emptied.get(volume);
    return times === undefined ? volume : `${volume}/again ${times}`;
  }

  /** The volume was given up: who comes from now on has another one in its place. */
  emptied(volume: string): void {
    this.#emptied.set(volume, (this.#emptied.get(volume) ?? 0) + 1);
  }

  /** A write begins; returns the function that acknowledges it. */
  writing(volume: string, number: number, fromMs: number): (untilMs: number) => void {
    const writings = this.#of(volume);
    const writing: Writing = { number, fromMs };
    writings.push(writing);
    return (untilMs) => {
      const other = writings.find((w) => w !== writing && w.number === number && w.untilMs !== undefined);
      if (other !== undefined) this.#onBreak(`record ${number} of ${volume} was acknowledged twice`);
      writing.untilMs = untilMs;
    };
  }

  /** A read that lasted from `fromMs` to `untilMs` has found this as the last number. */
  read(volume: string, number: number, fromMs: number, untilMs: number): void {
    const writings = this.#of(volume);
    const before = writings.filter((w) => w.untilMs !== undefined && w.untilMs <= fromMs);
    const least = Math.max(0, ...before.map((w) => w.number));
    const most = Math.max(0, ...writings.filter((w) => w.fromMs <= untilMs).map((w) => w.number));
    if (number < least)
      this.#onBreak(`${volume} was read up to ${number}, but ${least} was acknowledged before`);
    if (number > most) this.#onBreak(`${volume} was read up to ${number}, but only ${most} was ever written`);
  }

  /** A volume holds what was never written to it. */
  foreign(volume: string, text: string): void {
    this.#onBreak(`${volume} begins with what was not written to it: ${text.slice(0, text.indexOf("\n"))}`);
  }

  /** How many writes were acknowledged to the volume, or to one of those whose names begin with it and a slash. */
  acknowledged(volume: string): number {
    const volumes = [...this.#volumes].filter(([name]) => name === volume || name.startsWith(`${volume}/`));
    return volumes.flatMap(([, writings]) => writings).filter((w) => w.untilMs !== undefined).length;
  }

  #of(volume: string): Writing[] {
    const known = this.#volumes.get(volume) ?? [];
    this.#volumes.set(volume, known);
    return known;
  }
}
