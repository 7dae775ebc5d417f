/**
 * Bytes to text without splitting a character, and where possible not a line either, so that whoever reads
 * the text seldom has to keep a rest.
 */

import { isAscii } from "node:buffer";

const NEWLINE = 10;
const NOTHING = Buffer.alloc(0);

/** Turns chunks of UTF-8 into strings; each ends with a line where the chunk held one. */
export class TextFeed {
  #rest: Buffer = NOTHING;

  /** The text that `chunk` completes; may be empty. */
  push(chunk: Uint8Array): string {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    const newline = bytes.lastIndexOf(NEWLINE);
    const end = newline >= 0 ? newline + 1 : characterBoundary(bytes);
    this.#rest = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end));
    // Plain ASCII, the common case, is copied rather than decoded.
    return bytes.toString(isAscii(bytes) ? "latin1" : "utf8", 0, end);
  }

  /** What is left once the input has ended. */
  end(): string {
    const text = this.#rest.toString("utf8");
    this.#rest = NOTHING;
    return text;
  }
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
  return bytes.length;
}
