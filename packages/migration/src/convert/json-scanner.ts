/**
 * Finds the end of JSON values in text that arrives in parts, and the items of a list inside one. Brackets and
 * strings are all it understands; whether a value is sound is for the parser to say. To a sink that parses items, they
 * are offered by a guess of their end (`item-guess.ts`) first, which saves looking at every bracket.
 */

import { ItemGuess } from "./item-guess.ts";
import type { PieceSink } from "./piece-sink.ts";
import type { TextWindow } from "./text-window.ts";

const INTERESTING = /["{}[\],]/g;
const KIND = /"kind"\s*:\s*"([^"]*)"/;

/** Reads one top-level value at a time. */
export class JsonScanner {
  readonly #window: TextWindow;
  readonly #sink: PieceSink;
  /** How far the present value has been scanned, counted from the window's `at`. */
  #scanned = 0;
  #depth = 0;
  #inString = false;
  #stringStart = 0;
  /** The last string at depth 1: the name of the member whose value follows. */
  #lastString = "";
  /** Set once the items of a list have begun; the depth between items, or -1 when they have ended. */
  #list: { readonly itemDepth: number } | undefined;
  #startLine = 1;
  /** Set where an item may begin and its end is to be guessed. */
  #guess: ItemGuess | undefined;
  #mayGuess = false;

  constructor(window: TextWindow, sink: PieceSink) {
    this.#window = window;
    this.#sink = sink;
  }

  /** A value begins at the window's `at`. */
  begin(): void {
    this.#scanned = 0;
    this.#depth = 0;
    this.#inString = false;
    this.#lastString = "";
    this.#list = undefined;
    this.#guess = undefined;
    this.#mayGuess = false;
    this.#startLine = this.#window.line;
  }

  /** Reads on; true when the value is complete, false when more text is needed. */
  read(): boolean {
    const window = this.#window;
    for (;;) {
      if (this.#mayGuess && !this.#guessItems()) return false;
      if (this.#inString && !this.#skipString()) return this.#starved();
      INTERESTING.lastIndex = window.at + this.#scanned;
      const found = INTERESTING.exec(window.text);
      if (found === null) {
        this.#scanned = window.text.length - window.at;
        return this.#starved();
      }
      if (this.#step(found[0], found.index)) return true;
    }
  }

  /** Takes the items that begin here if their end is guessed; false: more text is needed for that. */
  #guessItems(): boolean {
    const window = this.#window;
    this.#mayGuess = false;
    for (const guess of ["last", "first"] as const) {
      const end = this.#guess?.endOfItems(window, guess);
      if (end === "later") {
        this.#mayGuess = true;
        return false;
      }
      if (end === undefined) continue;
      const text = window.text.slice(window.at, end);
      if (this.#sink.jsonItems?.(text, window.line) === true) {
        window.take(end);
        return true;
      }
      this.#guess?.wasWrong(window);
    }
    return true;
  }

  /** Takes one bracket, quote or comma; true when the value ends with it. */
  #step(char: string, index: number): boolean {
    const window = this.#window;
    this.#scanned = index + 1 - window.at;
    if (char === '"') {
      this.#inString = true;
      this.#stringStart = this.#scanned;
    } else if (char === "{" || char === "[") {
      this.#depth += 1;
      if (char === "[" && this.#opensItems()) this.#openList(index + 1);
    } else if (char === ",") {
      if (this.#depth === this.#list?.itemDepth) this.#closeItem(index);
    } else {
      if (this.#depth === this.#list?.itemDepth) this.#closeItems(index);
      this.#depth -= 1;
      if (this.#depth === 0) return this.#closeValue(index + 1);
    }
    return false;
  }

  #opensItems(): boolean {
    if (this.#list !== undefined) return false;
    if (this.#depth === 1) return true;
    if (this.#depth !== 2 || this.#lastString !== "items") return false;
    const kind = KIND.exec(this.#window.text.slice(this.#window.at, this.#window.at + this.#scanned))?.[1];
    // A kind may also follow the items: then `listEnd` says that these were no items.
    return kind === undefined || kind.endsWith("List");
  }

  #openList(end: number): void {
    this.#list = { itemDepth: this.#depth };
    this.#scanned = 0;
    this.#sink.listStart("json", this.#window.take(end));
    this.#guess = this.#sink.jsonItems === undefined ? undefined : new ItemGuess();
    this.#mayGuess = this.#guess !== undefined;
  }

  #closeItem(end: number): void {
    const line = this.#window.line;
    const text = this.#window.take(end);
    this.#window.at += 1; // The comma.
    this.#scanned = 0;
    this.#mayGuess = this.#guess !== undefined;
    const item = text.trim();
    if (item !== "") this.#sink.listItem("json", item, line, "");
  }

  #closeItems(end: number): void {
    this.#closeItem(end);
    // `closeItem` has skipped a comma; here it is the bracket, which belongs to the tail.
    this.#window.at -= 1;
    this.#scanned = 1;
    this.#mayGuess = false;
    if (this.#list !== undefined) this.#list = { itemDepth: -1 };
  }

  #closeValue(end: number): boolean {
    const text = this.#window.take(end);
    if (this.#list === undefined) this.#sink.json(text, this.#startLine);
    else this.#sink.listEnd("json", text, this.#startLine);
    return true;
  }

  /** Moves behind the string that is open; false when its end has not come yet. */
  #skipString(): boolean {
    const { text, at } = this.#window;
    let from = at + this.#scanned;
    for (;;) {
      const quote = text.indexOf('"', from);
      // A string never spans lines: behind a raw newline the next value may begin.
      if (quote < 0 || text.slice(from, quote).includes("\n")) {
        this.#scanned = text.length - at;
        return false;
      }
      let backslashes = 0;
      while (text.charCodeAt(quote - 1 - backslashes) === 92) backslashes += 1;
      from = quote + 1;
      if (backslashes % 2 === 1) continue;
      if (this.#depth === 1) this.#lastString = text.slice(at + this.#stringStart, quote);
      this.#scanned = from - at;
      this.#inString = false;
      return true;
    }
  }

  /** No text is left. A raw newline in a string, or the end of the input, ends a value that was never closed. */
  #starved(): boolean {
    const window = this.#window;
    const inString = this.#inString ? window.text.indexOf("\n", window.at + this.#stringStart) : -1;
    if (inString < 0 && !window.ended) return false;
    const line = window.line;
    const text = window.take(inString < 0 ? window.text.length : inString + 1);
    const reason = this.#inString ? "a string is not closed" : "a bracket is not closed";
    if (this.#list !== undefined) this.#sink.listEnd("json", "", line);
    this.#sink.malformed(text, line, reason);
    return true;
  }
}
