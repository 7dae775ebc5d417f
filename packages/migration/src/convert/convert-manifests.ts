/**
 * Converts a stream of manifests: cuts it into objects, translates those that can be, writes all of them.
 *
 * Invariants
 *  - At most one object and one chunk of text are held at a time, whatever the size of the input.
 *  - An object that cannot be translated is reported and written as it is.
 *  - A YAML document that is not changed is written byte for byte, comments included.
 */

import type { ConversionNote, NoteSink } from "./conversion-note.ts";
import { type ConversionOptions, convertObject } from "./convert-object.ts";
import { isList, isObject, type KubeObject, nameOf } from "./kube-object.ts";
import { type ItemType, itemTypeOf, itemTypeOfHead, typedItem } from "./list-items.ts";
import { type ManifestInput, textBytes } from "./manifest-input.ts";
import {
  JsonListOutput,
  JsonlOutput,
  type ManifestOutput,
  type ManifestWriter,
  OutputBuffer,
  type OutputFormat,
  YamlOutput,
} from "./manifest-output.ts";
import { ManifestSplitter } from "./manifest-splitter.ts";
import type { PieceSink } from "./piece-sink.ts";
import { splicedVolume } from "./splice-json.ts";
import { encodingOf, TextFeed } from "./text-feed.ts";
import { VolumeLines } from "./volume-lines.ts";
import { hasComments } from "./yaml-comments.ts";
import { parseYaml } from "./yaml-text.ts";

const LINE_FEED = 10;
/** The kind of a list that names it only behind its items. */
const KIND_BEHIND = /^\s*,?\s*"?kind"?:\s*"?([A-Za-z0-9]+)/m;

/** Settings of a conversion of a whole stream. */
export interface ManifestOptions extends ConversionOptions {
  /** The form of the output; absent: that of the input, a `List` for JSON that is not one object a line. */
  readonly output?: OutputFormat | undefined;
  /** Receives the notes, in the order of the input. */
  readonly note: NoteSink;
}

/** How a conversion ended. */
export interface ConversionTotals {
  /** Objects read. */
  readonly objects: number;
  /** Objects that were changed. */
  readonly converted: number;
  /** Objects that should have been changed and could not be, malformed ones included. */
  readonly failed: number;
}

/**
 * Converts manifests from `inputs` (YAML documents, JSON, JSON lines or lists of objects, in any mixture, also
 * compressed by gzip), one after the other, to `writer`. Resolves when everything was written; rejects only when reading
 * or writing fails.
 * @throws ManifestInputError for an input that is no text
 */
export async function convertManifests(
  inputs: readonly ManifestInput[],
  writer: ManifestWriter,
  options: ManifestOptions,
): Promise<ConversionTotals> {
  const out = new OutputBuffer(writer);
  const conversion = new Conversion(out, options);
  for (const input of inputs) {
    const splitter = new ManifestSplitter(conversion);
    const feed = new TextFeed();
    conversion.begin(input.name);
    for await (const chunk of textBytes(input)) {
      for (const bytes of feed.push(chunk)) conversion.read(bytes, splitter);
      if (out.isFull) await out.flush();
    }
    splitter.push(feed.end().toString("utf8"));
    splitter.end();
  }
  conversion.end();
  await out.flush();
  return conversion.totals;
}

class Conversion implements PieceSink {
  readonly totals = { objects: 0, converted: 0, failed: 0 };
  readonly #out: OutputBuffer;
  readonly #options: ManifestOptions;
  readonly #note: NoteSink;
  readonly #volumeLines: VolumeLines;
  #output: ManifestOutput | undefined;
  #input = "";
  /** What the list that is being read says of its items. */
  #items: ItemType | undefined;
  /** Where its first item without a kind is. */
  #untypedLine: number | undefined;

  constructor(out: OutputBuffer, options: ManifestOptions) {
    this.#out = out;
    this.#volumeLines = new VolumeLines(out);
    this.#options = options;
    this.#note = (note: ConversionNote) => {
      if (note.kind === "failed") this.totals.failed += 1;
      options.note(note);
    };
  }

  /** What follows comes from the input of this name. */
  begin(input: string): void {
    this.#input = input;
    if (this.#output instanceof YamlOutput) this.#output.beginInput();
  }

  /** Reads lines of volumes the short way, and hands `splitter` everything else. */
  read(bytes: Buffer, splitter: ManifestSplitter): void {
    const encoding = encodingOf(bytes);
    let at = 0;
    while (at < bytes.length) {
      if (encoding !== undefined && splitter.isIdle && this.#takesVolumeLines()) {
        at = this.#readVolumeLines(bytes, at, encoding, splitter);
        if (at === bytes.length) return;
      }
      // One line at a time only as long as each line is an object.
      const newline = splitter.isIdle && encoding !== undefined ? bytes.indexOf(LINE_FEED, at) : -1;
      const end = newline < 0 ? bytes.length : newline + 1;
      splitter.push(bytes.toString(encoding ?? "utf8", at, end));
      at = end;
    }
  }

  end(): void {
    this.#outputFor("yaml").end();
  }

  jsonLine(text: string): boolean {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return false;
    }
    const output = this.#outputFor(isObject(value) && isList(value) ? "json" : "jsonl");
    this.#json(value, text, output, true);
    return true;
  }

  json(text: string, line: number): void {
    this.#parsedJson(text, line);
  }

  yaml(text: string, line: number): void {
    const output = this.#outputFor("yaml");
    const value = this.#parsedYaml(text, line);
    if (value === failed || value == null) {
      // Nothing but comments, or not to be understood: only YAML has room for it.
      if (output instanceof YamlOutput) output.opening(text);
      return;
    }
    if (isObject(value) && isList(value)) {
      this.#yamlList(value, text, output);
      return;
    }
    const converted = this.#convert(value);
    if (converted !== undefined) this.#noteComments(value, text);
    if (output instanceof YamlOutput) {
      if (converted === undefined) output.opening(text);
      else output.document(text, converted);
    } else for (const object of converted ?? [value]) output.value(object);
  }

  listStart(form: "json" | "yaml", head: string): void {
    const output = this.#outputFor(form);
    if (form === "yaml" && output instanceof YamlOutput) output.opening(head);
    this.#items = itemTypeOfHead(form, head);
    this.#untypedLine = undefined;
  }

  listItem(form: "json" | "yaml", text: string, line: number, indent: string): void {
    if (form === "json") {
      this.#parsedJson(text, line, true);
      return;
    }
    const output = this.#outputFor("yaml");
    const parsed = this.#parsedYaml(text, line);
    const item = Array.isArray(parsed) ? this.#listItem(parsed[0], line) : failed;
    const converted = item === failed ? undefined : this.#convert(item);
    if (converted !== undefined) this.#noteComments(item, text);
    if (output instanceof YamlOutput) {
      if (converted === undefined) output.raw(text);
      else output.items(indent, converted);
    } else if (item !== failed) for (const object of converted ?? [item]) output.value(object);
  }

  listEnd(form: "json" | "yaml", tail: string, line: number): void {
    const output = this.#outputFor(form);
    if (form === "yaml" && output instanceof YamlOutput) output.raw(tail);
    const kind = KIND_BEHIND.exec(tail)?.[1];
    if (kind !== undefined && !kind.endsWith("List")) {
      const text = `its items were taken for the items of a list, but its kind is ${kind}; pass it by`;
      this.#note({ kind: "failed", object: `object of ${this.#input} at line ${line}`, text });
    } else if (this.#untypedLine !== undefined) {
      const text = "a list's item has no kind; give it one, or put the kind of the list before its items";
      this.#note({ kind: "failed", object: `${this.#input} at line ${this.#untypedLine}`, text });
    }
  }

  malformed(_text: string, line: number, reason: string): void {
    this.#note({
      kind: "failed",
      object: `${this.#input} at line ${line}`,
      text: `${reason}; correct it and run again`,
    });
  }

  #takesVolumeLines(): boolean {
    const { to, explain, output } = this.#options;
    // The short way translates to CSI only, and reports no steps.
    if (to !== "csi" || explain) return false;
    return this.#output === undefined ? (output ?? "jsonl") === "jsonl" : this.#output instanceof JsonlOutput;
  }

  #readVolumeLines(
    bytes: Buffer,
    start: number,
    encoding: "latin1" | "utf8",
    splitter: ManifestSplitter,
  ): number {
    const end = this.#volumeLines.convert(bytes, start, encoding);
    if (end === start) return start;
    this.#outputFor("jsonl");
    const { lines, converted } = this.#volumeLines.takeCounts();
    this.totals.objects += lines;
    this.totals.converted += converted;
    splitter.passLines(lines);
    return end;
  }

  /** An item with the kind from its list; the line of the first item without any kind is recorded. */
  #listItem(item: unknown, line: number): unknown {
    const typed = typedItem(item, this.#items);
    if (isObject(typed) && typed.kind === undefined) this.#untypedLine ??= line;
    return typed;
  }

  #parsedJson(text: string, line: number, isItem = false): void {
    const output = this.#outputFor("json");
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      this.malformed(text, line, `it is not JSON (${(error as Error).message})`);
      return;
    }
    const typed = isItem ? this.#listItem(value, line) : value;
    const whole = typed === value ? text : JSON.stringify(typed);
    this.#json(typed, whole, output, !whole.includes("\n"));
  }

  #json(value: unknown, text: string, output: ManifestOutput, oneLine: boolean): void {
    if (isObject(value) && isList(value)) {
      const type = itemTypeOf(value);
      for (const item of value.items) {
        const typed = typedItem(item, type);
        for (const object of this.#convert(typed) ?? [typed]) output.value(object);
      }
      return;
    }
    const converted = this.#convert(value);
    if (converted === undefined) {
      if (output instanceof YamlOutput) output.value(value);
      else if (oneLine) output.jsonLine(text);
      else output.jsonText(text, value);
      return;
    }
    const [first] = converted;
    const single =
      converted.length === 1 && first !== undefined && oneLine && !(output instanceof YamlOutput);
    const spliced = single ? splicedVolume(text, value as KubeObject, first) : undefined;
    if (spliced !== undefined) output.jsonPieces(spliced);
    else for (const object of converted) output.value(object);
  }

  #yamlList(
    list: KubeObject & { readonly items: readonly unknown[] },
    text: string,
    output: ManifestOutput,
  ): void {
    let changed = false;
    const type = itemTypeOf(list);
    const items = list.items.flatMap((item): readonly unknown[] => {
      const typed = typedItem(item, type);
      const converted = this.#convert(typed);
      changed ||= converted !== undefined;
      return converted ?? [typed];
    });
    if (changed) this.#noteComments(list, text);
    if (!(output instanceof YamlOutput)) for (const item of items) output.value(item);
    else if (changed) output.document(text, [{ ...list, items }]);
    else output.opening(text);
  }

  /** What is written again comes without its comments. */
  #noteComments(value: unknown, text: string): void {
    if (!isObject(value) || !hasComments(text)) return;
    this.#note({ kind: "dropped", object: nameOf(value), text: "the comments of its document are not kept" });
  }

  #parsedYaml(text: string, line: number): unknown {
    if (/^(?:[ \t]*(?:#.*)?\r?\n?)*$/.test(text)) return undefined;
    try {
      return parseYaml(text);
    } catch (error) {
      const reason = (error as { reason?: unknown }).reason ?? (error as Error).message;
      const inText = (error as { mark?: { line?: number } }).mark?.line ?? 0;
      this.malformed(text, line + inText, `it is not YAML (${String(reason)})`);
      return failed;
    }
  }

  #convert(value: unknown): readonly KubeObject[] | undefined {
    this.totals.objects += 1;
    const converted = convertObject(value, this.#options, this.#note);
    if (converted !== undefined) this.totals.converted += 1;
    return converted;
  }

  #outputFor(natural: OutputFormat): ManifestOutput {
    this.#output ??= outputOf(this.#options.output ?? natural, this.#out);
    return this.#output;
  }
}

const failed = Symbol("malformed");

function outputOf(format: OutputFormat, out: OutputBuffer): ManifestOutput {
  switch (format) {
    case "yaml":
      return new YamlOutput(out);
    case "json":
      return new JsonListOutput(out);
    case "jsonl":
      return new JsonlOutput(out);
  }
}
