/** Reads objects from files: YAML documents, JSON, JSON lines and lists, also compressed by gzip. */
import type { KubeObject } from "@longshore/kube";
import { isList, isObject } from "../convert/kube-object.ts";
import { type ItemType, itemTypeOf, itemTypeOfHead } from "../convert/list-items.ts";
import { type ManifestInput, ManifestInputError, textBytes } from "../convert/manifest-input.ts";
import { ManifestSplitter } from "../convert/manifest-splitter.ts";
import type { PieceSink } from "../convert/piece-sink.ts";
import { encodingOf, TextFeed } from "../convert/text-feed.ts";
import { parseYaml } from "../convert/yaml-text.ts";

/** What takes the objects. */
export interface ObjectSink {
  /** One object that has a name; nothing else has it. */
  object(object: KubeObject): void;
  /** A part that cannot be read. @param place the input, and the line */
  gap(place: string, reason: string): void;
  /** Takes parts that are not needed out of the text of a JSON object, before it is parsed. Default: none. */
  cut?(text: string): string;
}

const progressBytes = 100_000_000;

/** Reads inputs one after the other, an object at a time. */
export class ManifestReader implements PieceSink {
  /** Kinds of which there was a list, perhaps an empty one. */
  readonly listed = new Set<string>();
  readonly #sink: ObjectSink;
  #input = "";
  #items: ItemType | undefined;

  constructor(sink: ObjectSink) {
    this.#sink = sink;
  }

  #cut(text: string): string {
    return this.#sink.cut?.(text) ?? text;
  }

  async read(input: ManifestInput, onProgress?: (text: string) => void): Promise<void> {
    this.#input = input.name;
    const splitter = new ManifestSplitter(this);
    const feed = new TextFeed();
    try {
      let bytesRead = 0;
      for await (const chunk of textBytes(input)) {
        const before = Math.floor(bytesRead / progressBytes);
        bytesRead += chunk.length;
        const now = Math.floor(bytesRead / progressBytes);
        if (now > before) onProgress?.(`${now * 100} MB of ${input.name}`);
        for (const bytes of feed.push(chunk)) splitter.push(bytes.toString(encodingOf(bytes) ?? "utf8"));
      }
    } catch (error) {
      if (!(error instanceof ManifestInputError)) throw error;
      this.#gap(input.name, error.message);
    }
    splitter.push(feed.end().toString("utf8"));
    splitter.end();
  }

  jsonLine(text: string): boolean {
    let value: unknown;
    try {
      value = JSON.parse(this.#cut(text));
    } catch {
      return false;
    }
    this.#value(value);
    return true;
  }

  json(text: string, line: number): void {
    this.#parsed(
      () => JSON.parse(text),
      line,
      (value) => this.#value(value),
    );
  }

  yaml(text: string, line: number): void {
    // Blank lines at the end of the input come as a document of their own.
    if (text.trim() === "") return;
    this.#parsed(
      () => parseYaml(text),
      line,
      (value) => this.#value(value),
    );
  }

  listStart(form: "json" | "yaml", head: string): void {
    this.#items = itemTypeOfHead(form, head);
    if (this.#items !== undefined) this.listed.add(this.#items.kind);
  }

  listItem(form: "json" | "yaml", text: string, line: number): void {
    const parse = () => (form === "json" ? JSON.parse(text) : (parseYaml(text) as unknown[])[0]);
    this.#parsed(parse, line, (value) => this.#object(value, this.#items));
  }

  jsonItems(text: string): boolean {
    let values: readonly unknown[];
    try {
      values = JSON.parse(`[${this.#cut(text)}]`);
    } catch {
      return false;
    }
    for (const value of values) this.#object(value, this.#items);
    return true;
  }

  listEnd(): void {
    this.#items = undefined;
  }

  malformed(_text: string, line: number, reason: string): void {
    this.#gap(`${this.#input} at line ${line}`, reason);
  }

  #parsed(parse: () => unknown, line: number, take: (value: unknown) => void): void {
    let value: unknown;
    try {
      value = parse();
    } catch (error) {
      this.malformed("", line, (error as { reason?: string }).reason ?? (error as Error).message);
      return;
    }
    take(value);
  }

  #value(value: unknown): void {
    if (!isObject(value)) return;
    if (!isList(value)) {
      this.#object(value);
      return;
    }
    const type = itemTypeOf(value);
    if (type !== undefined) this.listed.add(type.kind);
    for (const item of value.items) this.#object(item, type);
  }

  /** @param type of items that name none */
  #object(value: unknown, type?: ItemType): void {
    if (!isObject(value) || !isObject(value.metadata) || typeof value.metadata.name !== "string") return;
    const object: { apiVersion?: string; kind?: string } & Omit<KubeObject, "apiVersion" | "kind"> = value;
    // Fresh from the parser: nothing else has it.
    if (type !== undefined && object.kind === undefined) {
      object.kind = type.kind;
      if (type.apiVersion !== undefined) object.apiVersion = type.apiVersion;
    }
    this.#sink.object(object);
  }

  #gap(object: string, reason: string): void {
    this.#sink.gap(object, reason);
  }
}
