/**
 * Guesses where items of a JSON list end, by how programs write lists: indented, so that the closing brace stands where the
 * opening one did, or on one line, so that the next item begins as the first one did. A parser confirms the guess: the text
 * of an object is never the beginning of a longer one. The last end in the text is guessed first, so that many items are parsed at once.
 */
import type { TextWindow } from "./text-window.ts";

/** An item that is longer than this, in characters, is looked at bracket by bracket. */
const guessedMax = 1024 * 1024;

const START = /[^ \t\r\n]/g;
const FIRST_MEMBER = /\{"[^"\\]*":/y;

/** The guess for the items of one list. */
export class ItemGuess {
  /** What marks the end of an item. */
  #mark: string | undefined;
  /** How much of the mark belongs to the item. */
  #ownLength = 0;
  /** How far the text behind the window's `at` was searched. */
  #searched = 0;
  /** Text in which the last mark is not the end of an item: items are taken one by one. */
  #singly: string | undefined;

  /**
   * The end of an item behind the window's `at`, where one begins: the `last` one that is all there, or the `first`.
   * Undefined: it is not known; "later": the text ends before.
   */
  endOfItems(window: TextWindow, which: "first" | "last"): number | "later" | undefined {
    const { text, at, ended } = window;
    if (which === "last" && text === this.#singly) return undefined;
    const more = ended || text.length - at > guessedMax ? undefined : "later";
    START.lastIndex = at;
    const start = START.exec(text)?.index;
    if (start === undefined) return more;
    if (text[start] !== "{") return undefined;
    if (this.#mark === undefined && !this.#learn(text, at, start)) return more;
    const mark = this.#mark as string;
    const from = Math.max(start + 1, at + this.#searched);
    const found = which === "first" ? text.indexOf(mark, from) : text.lastIndexOf(mark);
    if (found < from) {
      this.#searched = more === undefined ? 0 : Math.max(0, text.length - at - mark.length);
      return more;
    }
    this.#searched = 0;
    return found + this.#ownLength;
  }

  /** What was guessed in this text is no item. */
  wasWrong(window: TextWindow): void {
    this.#singly = window.text;
  }

  /** How the first item begins shows how the list is written; false: more of it is needed. */
  #learn(text: string, at: number, start: number): boolean {
    const newline = text.lastIndexOf("\n", start);
    if (newline >= at) {
      this.#mark = `${text.slice(newline, start)}}`;
      this.#ownLength = this.#mark.length;
      return true;
    }
    FIRST_MEMBER.lastIndex = start;
    const member = FIRST_MEMBER.exec(text)?.[0];
    if (member === undefined) return false;
    this.#mark = `},${member}`;
    this.#ownLength = 1;
    return true;
  }
}
