/** Reads an inventory from files: YAML documents, JSON, JSON lines and lists, also compressed by gzip. */
import type { KubeObject } from "@longshore/kube";
import { foreignText } from "@longshore/runtime";
import { isList, isObject } from "../convert/kube-object.ts";
import { type ItemType, itemTypeOf, itemTypeOfHead } from "../convert/list-items.ts";
import { type ManifestInput, ManifestInputError, textBytes } from "../convert/manifest-input.ts";
import { ManifestSplitter } from "../convert/manifest-splitter.ts";
import type { PieceSink } from "../convert/piece-sink.ts";
import { encodingOf, TextFeed } from "../convert/text-feed.ts";
import { parseYaml } from "../convert/yaml-text.ts";
import { found } from "./assessment-finding.ts";
import type { Inventory } from "./inventory.ts";
import { InventoryBuilder } from "./inventory-builder.ts";
import type { TemplatePath } from "./template-paths.ts";
import { withoutUnreadParts } from "./unread-parts.ts";

/** How a dump is read. */
export interface CollectManifestsOptions {
  /** When the dump was written, as far as it is known. */
  readonly now: Date;
  /** The dump has every Secret, with or without what is in them: one that is not there is missing in the cluster. */
  readonly checkSecrets?: boolean;
  /** Custom resources with templates of pods. */
  readonly templates?: readonly TemplatePath[];
  /** Is given a sentence for each 100 MB of an input that were read. */
  readonly onProgress?: (text: string) => void;
}

const progressBytes = 100_000_000;

/**
 * Reads the inputs one after the other, an object at a time. A part that cannot be read is a gap of the inventory, and so
 * is a kind that the verdict needs and of which there is no object. Values of Secrets are not kept.
 * @throws what reading an input throws
 */
export async function collectManifests(
  inputs: readonly ManifestInput[],
  options: CollectManifestsOptions,
): Promise<Inventory> {
  const builder = new InventoryBuilder(options.templates);
  if (options.checkSecrets === true) builder.lookForSecrets();
  const reader = new ManifestReader(builder);
  for (const input of inputs) await reader.read(input, options.onProgress);
  noteMissingKinds(builder, reader.listed);
  return builder.build(options.now);
}

function noteMissingKinds(builder: InventoryBuilder, listed: ReadonlySet<string>): void {
  for (const kind of builder.kinds) {
    const { kind: name, plural, group } = kind.resource;
    if (builder.has(kind) || listed.has(name) || !kind.essential) continue;
    builder.unread.add(name);
    const remedy = `add the output of \`kubectl get ${group === "" ? plural : `${plural}.${group}`} -A -o json\``;
    builder.gaps.push(
      found("LS1002", { object: `kind ${name}`, evidence: `the input has no ${name}`, remedy }),
    );
  }
}

class ManifestReader implements PieceSink {
  /** Kinds of which there was a list, perhaps an empty one. */
  readonly listed = new Set<string>();
  readonly #builder: InventoryBuilder;
  #input = "";
  #items: ItemType | undefined;

  constructor(builder: InventoryBuilder) {
    this.#builder = builder;
  }

  async read(input: ManifestInput, onProgress: CollectManifestsOptions["onProgress"]): Promise<void> {
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
      value = JSON.parse(withoutUnreadParts(text));
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
      values = JSON.parse(`[${withoutUnreadParts(text)}]`);
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
    if (object.kind === "Secret") {
      this.#builder.addSecret(object);
      return;
    }
    const kind = this.#builder.kindOf(object);
    if (kind !== undefined) this.#builder.add(kind, object);
  }

  #gap(object: string, reason: string): void {
    this.#builder.gaps.push(found("LS1004", { object, evidence: foreignText(reason) }));
  }
}
