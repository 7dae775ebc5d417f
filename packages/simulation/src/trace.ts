/** The trace of a simulation: what happened, as events that read like a story, and a sum by which runs are compared. */

/**
 * What an event is about: the crossing, a component that crashed or started, a disk, a call that was slow or lost, what the
 * provider does, or what broke the contract.
 */
export type TraceKind = "crossing" | "life" | "disk" | "call" | "cloud" | "rest" | "broken" | "stopped";

/** Something that happened. */
export interface TraceEvent {
  /** Virtual milliseconds since the beginning. */
  readonly atMs: number;
  /** How many calls the components had made: the number that `until` takes. */
  readonly step: number;
  readonly kind: TraceKind;
  /** Who or what it is about, e.g. a component or a disk. */
  readonly subject: string;
  /** What happened to it, or what it did. */
  readonly text: string;
}

/** An event as a line. */
export function traceLine({ atMs, step, subject, text }: TraceEvent): string {
  const seconds = (atMs / 1000).toFixed(3).padStart(10);
  return `${seconds} s  step ${String(step).padEnd(6)} ${subject} ${text}`;
}

/** A sum over lines: two runs of one seed are compared by this number instead of by their traces. */
export class TraceHash {
  #hash = 0x811c9dc5;

  /** FNV-1a over the line. */
  add(line: string): void {
    let hash = this.#hash;
    for (let i = 0; i < line.length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 0x01000193) >>> 0;
    this.#hash = hash;
  }

  /** Eight hexadecimal digits. */
  toString(): string {
    return this.#hash.toString(16).padStart(8, "0");
  }
}
