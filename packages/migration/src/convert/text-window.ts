/** Text that arrives in parts, and how much of it has been read. */

/** Text of which a part has been read; shared by the readers of the two formats. */
export class TextWindow {
  text = "";
  /** Where unread text begins. */
  at = 0;
  /** Number of the line at `at`. */
  line = 1;
  /** True once no more text will come. */
  ended = false;

  append(text: string): void {
    this.text = this.at >= this.text.length ? text : this.text.slice(this.at) + text;
    this.at = 0;
  }

  /** Reads up to `end` and returns the text. */
  take(end: number): string {
    const taken = this.text.slice(this.at, end);
    this.at = end;
    for (let i = taken.indexOf("\n"); i >= 0; i = taken.indexOf("\n", i + 1)) this.line += 1;
    return taken;
  }

  /** Reads one line that is known to end at `end`, newline included. */
  takeLine(end: number): string {
    const taken = this.text.slice(this.at, end);
    this.at = end;
    this.line += 1;
    return taken;
  }
}
