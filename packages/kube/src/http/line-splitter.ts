/** Cuts a stream of bytes into lines of text, wherever the pieces of the stream begin and end. */

const NEWLINE = 0x0a;

/** Collects bytes until a line is complete. A character is never cut: lines are decoded whole. */
export class LineSplitter {
  /** Pieces of the line that is not complete yet. */
  #pieces: Uint8Array[] = [];
  readonly #decoder = new TextDecoder("utf-8");

  /** Adds a piece of the stream and gives the lines that it completes, empty ones left out. */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end));
      start = end + 1;
      if (line !== "") yield line;
    }
    if (start < chunk.length) this.#pieces.push(chunk.subarray(start));
  }

  /** True when the stream so far ends inside a line. */
  get isInsideLine(): boolean {
    return this.#pieces.length > 0;
  }

  #take(last: Uint8Array): string {
    if (this.#pieces.length === 0) return this.#decoder.decode(last);
    const pieces = [...this.#pieces, last];
    this.#pieces = [];
    const line = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
    let offset = 0;
    for (const piece of pieces) {
      line.set(piece, offset);
      offset += piece.length;
    }
    return this.#decoder.decode(line);
  }
}
