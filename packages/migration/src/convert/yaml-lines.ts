/**
 * Finds the documents of a YAML stream by their separator lines, and the items of a list in block style by
 * their indentation. It reads lines only; what they mean is for the parser to say.
 */

import type { PieceSink } from "./piece-sink.ts";
import type { TextWindow } from "./text-window.ts";

const SEPARATOR = /^---(?:[ \t\r\n]|$)/;
const DOCUMENT_END = /^\.\.\.(?:[ \t\r\n]|$)/;
const NO_CONTENT = /^[ \t]*(?:#.*)?\r?\n?$/;
const DIRECTIVE = /^%/;
const ITEMS = /^items:[ \t]*(?:#.*)?\r?\n$/;
const DASH = /^( *)-(?:[ \t\r\n]|$)/;
const KIND = /^kind:[ \t]*["']?([A-Za-z0-9]*)/m;

/** Reads one document at a time. */
export class YamlLines {
  readonly #window: TextWindow;
  readonly #sink: PieceSink;
  /** Lines of the present document, or of the present item, that have not been handed on. */
  #lines: string[] = [];
  #startLine = 1;
  #hasContent = false;
  #hasSeparator = false;
  #list: "none" | "possible" | "items" | "tail" = "none";
  #indent = "";

  constructor(window: TextWindow, sink: PieceSink) {
    this.#window = window;
    this.#sink = sink;
  }

  /** A document begins at the window's `at`. */
  begin(): void {
    this.#lines = [];
    this.#startLine = this.#window.line;
    this.#hasContent = false;
    this.#hasSeparator = false;
    this.#list = "none";
  }

  /** Reads on; true when the document is complete, false when more text is needed. */
  read(): boolean {
    const window = this.#window;
    for (;;) {
      const newline = window.text.indexOf("\n", window.at);
      if (newline < 0 && (!window.ended || window.at >= window.text.length)) {
        if (!window.ended) return false;
        this.#close();
        return true;
      }
      const end = newline < 0 ? window.text.length : newline + 1;
      const line = window.text.slice(window.at, end);
      // Behind comments and directives alone a separator opens this document and does not end one.
      if (SEPARATOR.test(line) && (this.#hasContent || this.#hasSeparator)) {
        this.#close();
        return true;
      }
      window.takeLine(end);
      this.#take(line);
      if (DOCUMENT_END.test(line)) {
        this.#close();
        return true;
      }
    }
  }

  #take(line: string): void {
    if (this.#list === "possible") this.#tryItems(line);
    else if (this.#list === "items") this.#takeItemLine(line);
    this.#lines.push(line);
    if (SEPARATOR.test(line)) {
      this.#hasSeparator = true;
      if (!NO_CONTENT.test(line.slice(3))) this.#hasContent = true;
    } else if (!NO_CONTENT.test(line) && !DIRECTIVE.test(line)) this.#hasContent = true;
    if (this.#list === "none" && ITEMS.test(line) && this.#mayBeList()) this.#list = "possible";
  }

  #mayBeList(): boolean {
    const kind = KIND.exec(this.#lines.join(""))?.[1];
    return kind === undefined || kind.endsWith("List");
  }

  /** After `items:` the first line with content shows whether items follow, and how far they are indented. */
  #tryItems(line: string): void {
    if (NO_CONTENT.test(line)) return;
    const dash = DASH.exec(line);
    if (dash === null) {
      this.#list = "none";
      return;
    }
    this.#indent = dash[1] as string;
    this.#sink.listStart("yaml", this.#lines.join(""));
    this.#startItem();
  }

  #startItem(before: readonly string[] = []): void {
    this.#list = "items";
    this.#lines = [...before];
    this.#startLine = this.#window.line - 1 - before.length;
  }

  #takeItemLine(line: string): void {
    if (NO_CONTENT.test(line)) return;
    const dash = DASH.exec(line);
    if (dash !== null && dash[1] === this.#indent) this.#startItem(this.#closeItem());
    else if (line.search(/[^ ]/) <= this.#indent.length) {
      this.#lines = [...this.#closeItem()];
      this.#list = "tail";
    }
  }

  /** Hands the item on and returns the comments behind it, which belong to what follows. */
  #closeItem(): readonly string[] {
    // Only a comment that stands as far out as the dash is surely not the text of some block scalar.
    let end = this.#lines.length;
    for (let i = end - 1; i > 0 && NO_CONTENT.test(this.#lines[i] as string); i--) {
      const column = (this.#lines[i] as string).indexOf("#");
      if (column >= 0 && column <= this.#indent.length) end = i;
    }
    this.#sink.listItem("yaml", this.#lines.slice(0, end).join(""), this.#startLine, this.#indent);
    return this.#lines.slice(end);
  }

  #close(): void {
    if (this.#list === "items") this.#lines = [...this.#closeItem()];
    const text = this.#lines.join("");
    if (this.#list === "items" || this.#list === "tail") this.#sink.listEnd("yaml", text, this.#startLine);
    else if (text !== "") this.#sink.yaml(text, this.#startLine);
    this.#lines = [];
  }
}
