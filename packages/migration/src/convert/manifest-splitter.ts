/**
 * Cuts a stream of manifests into single objects, without ever holding more than one of them.
 *
 * ```text
 *            first character { or [                     any other
 *  between ──────────────────────────▶ JSON value   ──────────────▶ YAML document
 *     ▲         whole lines first           │                           │  ▲
 *     │                                     │ member `items`            │  │ next "---"
 *     └─────────────────────────────────────┴──▶ item by item ◀─────────┘──┘
 * ```
 *
 * A `List` is recognised by its member `items` at the top, because its `kind` may come after the items.
 */

import { JsonScanner } from "./json-scanner.ts";
import type { PieceSink } from "./piece-sink.ts";
import { TextWindow } from "./text-window.ts";
import { YamlLines } from "./yaml-lines.ts";

const BLANK = /[^ \t\r\n\ufeff]/g;

/** The splitter: push text, then end. */
export class ManifestSplitter {
  readonly #window = new TextWindow();
  readonly #sink: PieceSink;
  readonly #json: JsonScanner;
  readonly #yaml: YamlLines;
  #mode: "between" | "json" | "yaml" = "between";

  constructor(sink: PieceSink) {
    this.#sink = sink;
    this.#json = new JsonScanner(this.#window, sink);
    this.#yaml = new YamlLines(this.#window, sink);
  }

  /** True between two objects when nothing is waiting, so that lines may be read without the splitter. */
  get isIdle(): boolean {
    return this.#mode === "between" && this.#window.at >= this.#window.text.length;
  }

  /** Counts lines that were read without the splitter. */
  passLines(lines: number): void {
    this.#window.line += lines;
  }

  push(text: string): void {
    this.#window.append(text);
    this.#read();
  }

  end(): void {
    this.#window.ended = true;
    this.#read();
  }

  #read(): void {
    for (;;) {
      if (this.#mode === "between" && !this.#begin()) return;
      if (this.#mode === "between") continue;
      if (!(this.#mode === "json" ? this.#json.read() : this.#yaml.read())) return;
      this.#mode = "between";
    }
  }

  /** Decides what begins here; false when there is nothing to read yet. */
  #begin(): boolean {
    const window = this.#window;
    BLANK.lastIndex = window.at;
    const start = BLANK.exec(window.text)?.index;
    if (start === undefined) {
      // Blank lines at the end are passed on, since unchanged YAML is written byte for byte.
      if (window.ended && window.at < window.text.length)
        this.#sink.yaml(window.take(window.text.length), window.line);
      return false;
    }
    const char = window.text[start];
    if (char !== "{" && char !== "[") {
      this.#yaml.begin();
      this.#mode = "yaml";
      return true;
    }
    window.take(start);
    if (char === "{" && this.#wholeLine()) return true;
    this.#json.begin();
    this.#mode = "json";
    return true;
  }

  /** The common case, JSON lines: offers the whole line at once. */
  #wholeLine(): boolean {
    const { text, at, ended, line } = this.#window;
    const newline = text.indexOf("\n", at);
    if (newline < 0 && !ended) return false;
    let end = newline < 0 ? text.length : newline;
    if (text.charCodeAt(end - 1) === 13) end -= 1;
    if (text.charCodeAt(end - 1) !== 125 || !this.#sink.jsonLine(text.slice(at, end), line)) return false;
    this.#window.takeLine(newline < 0 ? text.length : newline + 1);
    return true;
  }
}
