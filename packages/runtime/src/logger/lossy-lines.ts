/**
 * Log lines whose write never fails for the caller: a line that cannot be written is dropped and counted, and once
 * writing works again a line says how many were lost. For a slow reader, lines wait in a buffer of bounded size.
 */
import { backoffMs } from "../backoff.ts";
import type { Timer } from "../clock/clock.ts";

/** Writes some of the bytes and returns how many; throws an error with the code EAGAIN when none can be written now. */
export type WriteSome = (bytes: Uint8Array) => number;

/** Options of {@link LossyLines}. */
export interface LossyLinesOptions {
  readonly write: WriteSome;
  /** The line, with its end, that says how many were lost. */
  readonly lostLine: (count: number) => string;
  /** Tries again after a moment. */
  readonly timer: (ms: number, work: () => void) => Timer;
  /** Bytes that may wait for a slow reader; default 1 MiB. */
  readonly waitingBytesMax?: number;
}

const retryMs = 50;
/** Whether there is room again is tried with this back-off. */
const roomBackoff = { initialMs: 1000, maximumMs: 10_000 };
const lineEnd = 0x0a;

/** See above. */
export class LossyLines {
  readonly #options: LossyLinesOptions;
  readonly #waitingBytesMax: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lost = 0;
  /** A line of which only a part could be written has no end yet. */
  #isTorn = false;
  #retry: Timer | undefined;
  /** Attempts in a row to report lost lines. */
  #attempts = 0;

  constructor(options: LossyLinesOptions) {
    this.#options = options;
    this.#waitingBytesMax = options.waitingBytesMax ?? 1024 * 1024;
  }

  /** Takes a line with its end. Never throws and never waits. */
  write(line: string): void {
    this.flush();
    if (this.#reportLost()) this.#put(Buffer.from(line));
    else this.#lost++;
    if (this.#lost > 0) this.#retrySoon();
  }

  /** Writes what waits, as far as that goes without waiting. */
  flush(): void {
    while (this.#waiting[0] !== undefined) {
      const first = this.#waiting[0];
      const written = this.#some(first);
      if (written === "later") {
        this.#retrySoon();
        return;
      }
      this.#waiting.shift();
      this.#waitingBytes -= first.length;
      if (written === "never") this.#lost++;
      else if (written < first.length) this.#wait(first.subarray(written), "first");
    }
  }

  /** False when there are lost lines, and that cannot be said yet. */
  #reportLost(): boolean {
    if (this.#lost === 0) return true;
    const count = this.#lost;
    this.#lost = 0;
    const end = this.#isTorn ? "\n" : "";
    this.#put(Buffer.from(end + this.#options.lostLine(count)));
    if (this.#lost === 0) {
      this.#attempts = 0;
      return true;
    }
    this.#lost = count;
    return false;
  }

  #put(line: Uint8Array): void {
    for (let at = 0; at < line.length; ) {
      const rest = line.subarray(at);
      const written = this.#waiting.length > 0 ? "later" : this.#some(rest);
      if (written === "later") {
        this.#wait(rest, "last");
        return;
      }
      if (written === "never") {
        this.#lost++;
        return;
      }
      at += written;
    }
  }

  #wait(bytes: Uint8Array, place: "first" | "last"): void {
    if (place === "last" && this.#waitingBytes + bytes.length > this.#waitingBytesMax) {
      this.#lost++;
      return;
    }
    // The rest of a line that has begun goes back without a look at the limit: else the line would stay torn.
    if (place === "first") this.#waiting.unshift(bytes);
    else this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#retrySoon();
  }

  #some(bytes: Uint8Array): number | "later" | "never" {
    try {
      const written = this.#options.write(bytes);
      if (written === 0) return "never";
      this.#isTorn = bytes[written - 1] !== lineEnd;
      return written;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EAGAIN" ? "later" : "never";
    }
  }

  #retrySoon(): void {
    if (this.#retry !== undefined) return;
    const delayMs = this.#waiting.length > 0 ? retryMs : backoffMs(roomBackoff, ++this.#attempts);
    this.#retry = this.#options.timer(delayMs, () => {
      this.#retry = undefined;
      this.flush();
      if (this.#waiting.length === 0 && !this.#reportLost()) this.#retrySoon();
    });
  }
}
