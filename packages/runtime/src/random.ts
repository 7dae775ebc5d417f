/**
 * The seam through which all randomness enters. Every draw names its purpose, so that the traces
 * of two runs can be compared line by line; a fork is a stream of its own, so drawing more from
 * one component leaves every other component's draws as they were.
 */
import { randomInt, randomUUID } from "node:crypto";

/**
 * A source of random draws. Each component draws from a stream of its own. With a seed, the n-th draw of a stream is the
 * same in every run, and a fork depends on the seed and its label alone, not on what was drawn before. Not for secrets,
 * in the seeded form.
 */
export interface Random {
  /** An integer in [0, bound), for 0 < bound ≤ 2^32. `purpose` names the draw. */
  below(bound: number, purpose: string): number;
  /** A version 4 UUID in lower case. */
  uuid(purpose: string): string;
  /** A stream of its own, named `label`. */
  fork(label: string): Random;
}

class SystemRandom implements Random {
  below(bound: number): number {
    return randomInt(bound);
  }
  uuid(): string {
    return randomUUID();
  }
  fork(): Random {
    return this;
  }
}

/** The machine's entropy; its forks are itself. */
export const systemRandom: Random = new SystemRandom();

/** The virtual form: the same seed and labels give the same draws, in every process and version. */
export class SeededRandom implements Random {
  #state: number;
  readonly #seed: number;

  /** @param seed any 32-bit integer */
  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#state = this.#seed;
  }

  below(bound: number, _purpose: string): number {
    return Math.floor((this.#next() / 2 ** 32) * bound);
  }

  uuid(_purpose: string): string {
    const bytes = new Uint8Array(16);
    const view = new DataView(bytes.buffer);
    for (let offset = 0; offset < 16; offset += 4) view.setUint32(offset, this.#next());
    return formatUuid(bytes);
  }

  fork(label: string): Random {
    return new SeededRandom(hash(label, this.#seed));
  }

  /** Mulberry32: small, fast and good enough to choose schedules and faults; not for secrets. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }
}

/** FNV-1a over the UTF-16 units of `text`, begun from `seed`. */
function hash(text: string, seed: number): number {
  let h = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return h;
}

function formatUuid(bytes: Uint8Array): string {
  const b = Uint8Array.from(bytes);
  b[6] = ((b[6] ?? 0) & 0x0f) | 0x40;
  b[8] = ((b[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(b, (v) => v.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
