/** Cuts a stream of bytes into lines, wherever the pieces of the stream begin and end. */

const NEWLINE = 0x0a;

/** Bytes of a complete line, valid until the caller releases the chunk that completed it. */
export interface Line {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Collects bytes until a line is complete. */
export class LineSplitter {
  /** Pieces of the line that is not complete yet. */
  #pieces: Uint8Array[] = [];

  /** Adds a chunk of the stream and returns the lines that it completes, without empty lines. */
  push(chunk: Uint8Array): Line[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: Line[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      if (this.#pieces.length > 0) {
        const line = Buffer.concat([...this.#pieces, bytes.subarray(start, end)]);
        this.#pieces = [];
        lines.push({ bytes: line, start: 0, end: line.length });
      } else if (end > start) lines.push({ bytes, start, end });
      start = end + 1;
    }
    if (start < bytes.length) this.#pieces.push(bytes.subarray(start));
    return lines;
  }

  /** True when the stream so far ends inside a line. */
  get isInsideLine(): boolean {
    return this.#pieces.length > 0;
  }
}
