/** Writing manifests in the three forms, in large pieces. */

import { formatYaml } from "./yaml-text.ts";

/**
 * Where converted manifests go. Receives bytes in the order of the input, in buffers that need not end with an object. A
 * returned promise is awaited, so that a slow receiver slows the reading; a rejection ends the conversion.
 */
export interface ManifestWriter {
  /** Takes bytes in order; the promise settles when more may come. The bytes are the writer's own. */
  write(bytes: Uint8Array): void | Promise<void>;
}

/** The form of the output: YAML documents, one JSON `List`, or one line of JSON an object. */
export type OutputFormat = "yaml" | "json" | "jsonl";

/** Enough for a few objects: most inputs have no more, and a buffer that is left weighs on the whole heap's collection. */
const FIRST_CAPACITY = 16 * 1024;
/** Enough for what one chunk of a long input becomes, as a rule. */
const CAPACITY = 512 * 1024;
const NOTHING = Buffer.alloc(0);
const FLUSH_LENGTH = 128 * 1024;
/** Up to here a text is given three bytes a unit, the most that UTF-8 takes, and not measured. */
const SHORT_LENGTH = 4096;

/** Collects bytes and hands them on once there are enough of them. */
export class OutputBuffer {
  readonly #writer: ManifestWriter;
  #bytes = NOTHING;
  #length = 0;
  #capacity = FIRST_CAPACITY;

  constructor(writer: ManifestWriter) {
    this.#writer = writer;
  }

  add(text: string): void {
    this.#reserve(text.length <= SHORT_LENGTH ? text.length * 3 : Buffer.byteLength(text));
    this.#length += this.#bytes.write(text, this.#length, "utf8");
  }

  /** A part of a buffer, which may change as soon as this returns. */
  addBytes(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    this.#length += bytes.copy(this.#bytes, this.#length, start, end);
  }

  /** True when enough output is waiting to be written. */
  get isFull(): boolean {
    return this.#length >= FLUSH_LENGTH;
  }

  async flush(): Promise<void> {
    if (this.#length === 0) return;
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    this.#capacity = CAPACITY;
    await this.#writer.write(bytes);
  }

  #reserve(length: number): void {
    const needed = this.#length + length;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length, this.#capacity));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** One form of output. Lists in YAML stay lists; elsewhere their items are written one by one. */
export interface ManifestOutput {
  /** An object as text of one line of JSON. */
  jsonLine(text: string): void;
  /** The same in pieces. */
  jsonPieces(pieces: readonly string[]): void;
  /** An object as JSON over any number of lines. */
  jsonText(text: string, value: unknown): void;
  /** An object. */
  value(value: unknown): void;
  end(): void;
}

/** JSON lines: an object a line. */
export class JsonlOutput implements ManifestOutput {
  readonly #out: OutputBuffer;
  constructor(out: OutputBuffer) {
    this.#out = out;
  }
  jsonLine(text: string): void {
    this.#out.add(text);
    this.#out.add("\n");
  }
  jsonPieces(pieces: readonly string[]): void {
    for (const piece of pieces) this.#out.add(piece);
    this.#out.add("\n");
  }
  jsonText(_text: string, value: unknown): void {
    this.value(value);
  }
  value(value: unknown): void {
    this.jsonLine(JSON.stringify(value));
  }
  end(): void {}
}

/** One `List` over everything. */
export class JsonListOutput implements ManifestOutput {
  readonly #out: OutputBuffer;
  #empty = true;
  constructor(out: OutputBuffer) {
    this.#out = out;
  }
  jsonLine(text: string): void {
    this.#out.add(this.#empty ? '{"apiVersion":"v1","kind":"List","items":[\n' : ",\n");
    this.#out.add(text);
    this.#empty = false;
  }
  jsonPieces(pieces: readonly string[]): void {
    this.jsonLine(pieces.join(""));
  }
  jsonText(text: string): void {
    this.jsonLine(text);
  }
  value(value: unknown): void {
    this.jsonLine(JSON.stringify(value));
  }
  end(): void {
    this.#out.add(this.#empty ? '{"apiVersion":"v1","kind":"List","items":[]}\n' : "\n]}\n");
  }
}

/** A document behind a separator, with the comments and directives that may stand before it. */
const SEPARATED = /^(?:[ \t]*(?:#.*)?\r?\n|%.*\n)*---/;

/** A stream of YAML documents. */
export class YamlOutput implements ManifestOutput {
  readonly #out: OutputBuffer;
  #empty = true;
  #endsLine = true;
  #beginsInput = false;
  constructor(out: OutputBuffer) {
    this.#out = out;
  }
  jsonLine(text: string): void {
    this.value(JSON.parse(text));
  }
  jsonPieces(pieces: readonly string[]): void {
    this.jsonLine(pieces.join(""));
  }
  jsonText(_text: string, value: unknown): void {
    this.value(value);
  }
  value(value: unknown): void {
    if (!this.#empty) this.raw("---\n");
    this.raw(formatYaml(value));
  }
  /** What follows comes from another input, whose first document need not have a separator. */
  beginInput(): void {
    this.#beginsInput = !this.#empty;
  }
  /** The text of a document, or of the opening of a list, as it stands. */
  opening(text: string): void {
    if (this.#beginsInput && !SEPARATED.test(text)) this.raw("---\n");
    this.raw(text);
  }
  /** Text as it stands: a document with its separator, or part of a list. */
  raw(text: string): void {
    if (text === "") return;
    this.#out.add(this.#endsLine ? text : `\n${text}`);
    this.#endsLine = text.endsWith("\n");
    this.#empty = false;
    this.#beginsInput = false;
  }
  /** A translated document in the place of `text`, behind the same separator. */
  document(text: string, values: readonly unknown[]): void {
    const separated = SEPARATED.test(text);
    for (const [i, value] of values.entries()) {
      if (i > 0 || separated || !this.#empty) this.raw("---\n");
      this.raw(formatYaml(value));
    }
  }
  /** Items of a list in block style. */
  items(indent: string, values: readonly unknown[]): void {
    for (const value of values) {
      const lines = formatYaml(value).trimEnd().split("\n");
      this.raw(`${lines.map((line, i) => itemLine(indent, line, i)).join("\n")}\n`);
    }
  }
  end(): void {}
}

function itemLine(indent: string, line: string, index: number): string {
  if (index === 0) return `${indent}- ${line}`;
  return line === "" ? "" : `${indent}  ${line}`;
}
