/**
 * Splits a byte stream without splitting a character, and where possible without splitting a line, so that the reader
 * seldom has to keep a rest; and the text of the parts.
 */

import { isAscii, isUtf8 } from "node:buffer";

const NEWLINE = 10;
const NOTHING = Buffer.alloc(0);

/** Cuts chunks of UTF-8 at other places; each part ends with a line where the chunk held one. */
export class TextFeed {
  #rest: Buffer = NOTHING;

  /** What `chunk` completes, in at most two parts: the line that was begun before, and the others. */
  push(chunk: Uint8Array): readonly Buffer[] {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const first = this.#rest.length === 0 ? 0 : fresh.indexOf(NEWLINE) + 1;
    const parts: Buffer[] = [];
    if (first > 0) {
      parts.push(Buffer.concat([this.#rest, fresh.subarray(0, first)]));
      this.#rest = NOTHING;
    }
    const bytes = this.#rest.length === 0 ? fresh.subarray(first) : Buffer.concat([this.#rest, fresh]);
    const newline = bytes.lastIndexOf(NEWLINE);
    // A chunk that held a line leaves the next one whole, too.
    const end = newline >= 0 || first > 0 ? newline + 1 : characterBoundary(bytes);
    this.#rest = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end));
    if (end > 0) parts.push(bytes.subarray(0, end));
    return parts;
  }

  /** What is left once the input has ended. */
  end(): Buffer {
    const bytes = this.#rest;
    this.#rest = NOTHING;
    return bytes;
  }
}

/**
 * How to decode these bytes: plain ASCII, the common case, is copied rather than decoded. `undefined`: they are not
 * UTF-8, and decoding them as such replaces what is wrong.
 */
export function encodingOf(bytes: Buffer): "latin1" | "utf8" | undefined {
  if (isAscii(bytes)) return "latin1";
  return isUtf8(bytes) ? "utf8" : undefined;
}

/** The end of the last whole character. */
function characterBoundary(bytes: Buffer): number {
  for (let back = 1; back <= 4 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return bytes.length - back + 1;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return back >= length ? bytes.length : bytes.length - back;
    }
  }
  // No character begins in the last four bytes, so this is no UTF-8: waiting for more would not help.
  return bytes.length;
}
