/** Cuts a stream of bytes into lines of text, wherever the pieces of the stream begin and end. */

const NEWLINE = 0x0a;

/** Collects bytes until a line is complete. A character is never cut: lines are decoded whole. */
export class LineSplitter {
  /** Pieces of the line that is not complete yet. */
  #pieces: Uint8Array[] = [];

  /** Adds a piece of the stream and gives the lines that it completes, empty ones left out. */
  push(chunk: Uint8Array): string[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: string[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const line = this.#take(bytes, start, end);
      start = end + 1;
      if (line !== "") lines.push(line);
    }
    if (start < bytes.length) this.#pieces.push(bytes.subarray(start));
    return lines;
  }

  /** True when the stream so far ends inside a line. */
  get isInsideLine(): boolean {
    return this.#pieces.length > 0;
  }

  #take(bytes: Buffer, start: number, end: number): string {
    if (this.#pieces.length === 0) return bytes.toString("utf8", start, end);
    const pieces = [...this.#pieces, bytes.subarray(start, end)];
    this.#pieces = [];
    return Buffer.concat(pieces).toString("utf8");
  }
}
