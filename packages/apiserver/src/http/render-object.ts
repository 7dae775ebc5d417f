/** Turns the registry's answers into the bytes of a response. */

import type { KubeObject, Stored } from "@longshore/kube";
import type { ListAnswer, WatchItem } from "../api/api-request.ts";
import { badRequest } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { bodyBytes, objectParts } from "../api/object-parts.ts";
import { hasMessage } from "../schema/message-fields.ts";
import {
  itemHead,
  listHead,
  messageBytes,
  objectToProtobuf,
  protobufType,
  watchFrame,
} from "../schema/object-to-protobuf.ts";
import type { AnswerForm } from "./negotiate.ts";
import { apiVersionOf, inVersion, type RenderContext } from "./render-context.ts";
import { metaVersion, partial, tableOf, tableParts } from "./table-parts.ts";
import { toYaml } from "./yaml.ts";

/** An answer on its way: pieces that are made as they are taken. */
export interface Rendered {
  readonly type: string;
  readonly parts: Iterable<Uint8Array>;
}

/** The bytes of one object (or Status), whole, in JSON or protobuf. */
function objectBytes(object: KubeObject, context: RenderContext): readonly Uint8Array[] {
  if (context.form.encoding === "protobuf") {
    const bytes = objectToProtobuf(inVersion(object, context));
    if (bytes !== undefined) return [bytes];
  }
  if (object.kind === undefined || object.apiVersion === undefined) return [jsonBytes(object)];
  return objectParts(object, inVersion(object, context).apiVersion ?? "");
}

function jsonBytes(value: unknown): Buffer {
  return Buffer.from(toJson(value));
}

/** One object (or Status) as the client wants it. */
export function renderObject(object: KubeObject, context: RenderContext): Rendered {
  const { as, encoding } = context.form;
  const isStatus = object.kind === "Status" && context.kind.kind !== "Status";
  if (as === "Table" && !isStatus) {
    const table = tableOf([object as Stored], context);
    const metadata = { resourceVersion: object.metadata?.resourceVersion };
    return inEncoding(encoding, [jsonBytes({ ...table, metadata })]);
  }
  if (as !== undefined && as !== "PartialObjectMetadata" && !isStatus) {
    throw badRequest(`you requested ${as}, but this is a single object`);
  }
  const shown = as === undefined || isStatus ? object : partial(object, context.form);
  // What has no form in protobuf (a Scale) is answered in JSON, which every client reads.
  const isProtobuf = encoding === "protobuf" && hasForm(shown);
  return inEncoding(encoding === "protobuf" && !isProtobuf ? "json" : encoding, objectBytes(shown, context));
}

function hasForm({ apiVersion = "", kind = "" }: KubeObject): boolean {
  return hasMessage(apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "", kind);
}

/** JSON as it is, or turned into YAML; bytes of protobuf as they are. */
function inEncoding(encoding: AnswerForm["encoding"], parts: Iterable<Uint8Array>): Rendered {
  if (encoding === "yaml") {
    return { type: "application/yaml", parts: [Buffer.from(toYaml(Buffer.concat([...parts]).toString()))] };
  }
  return { type: encoding === "protobuf" ? protobufType : "application/json", parts };
}

/** A list as the client wants it. */
export function renderList(answer: ListAnswer, context: RenderContext): Rendered {
  const metadata = {
    resourceVersion: answer.resourceVersion,
    ...(answer.continue === undefined ? {} : { continue: answer.continue }),
    ...(answer.remaining === undefined ? {} : { remainingItemCount: answer.remaining }),
  };
  const { kind, form } = context;
  const { encoding } = form;
  if (form.as === "Table") return inEncoding(encoding, tableParts(answer.items, metadata, context));
  if (form.as !== undefined && form.as !== "PartialObjectMetadataList") {
    throw badRequest(`you requested ${form.as}, but this is a list`);
  }
  const list =
    form.as === undefined
      ? { kind: kind.custom?.listKind ?? `${kind.kind}List`, apiVersion: apiVersionOf(context), metadata }
      : { kind: form.as, apiVersion: metaVersion(form), metadata };
  if (encoding === "protobuf") return inEncoding(encoding, protobufList(list, answer.items, context));
  if (encoding === "yaml") return { type: "application/yaml", parts: yamlList(list, answer.items, context) };
  return inEncoding(encoding, jsonList(list, answer.items, context));
}

interface ListHead {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: object;
}

const comma = Buffer.from(",");
const listEnd = Buffer.from("]}");

function* jsonList(list: ListHead, items: readonly Stored[], context: RenderContext): Iterable<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(list).slice(0, -1)},"items":[`);
  let isFirst = true;
  for (const item of items) {
    if (!isFirst) yield comma;
    isFirst = false;
    yield* itemParts(item, context);
  }
  yield listEnd;
}

/** One item of a list in JSON. */
function itemParts(item: Stored, context: RenderContext): readonly Uint8Array[] {
  if (context.form.as !== undefined) return [jsonBytes(partial(item, context.form))];
  // Items of built-in kinds do not say what they are; those of custom resources do.
  return hasMessage(context.kind.group, context.kind.kind) ? [bodyBytes(item)] : objectBytes(item, context);
}

/** The text that the whole list has as YAML, made item by item: its members stand in the order of their names. */
function* yamlList(list: ListHead, items: readonly Stored[], context: RenderContext): Iterable<Uint8Array> {
  const { apiVersion, ...rest } = list;
  yield Buffer.from(
    `${toYaml(JSON.stringify({ apiVersion }))}${items.length === 0 ? "items: []" : "items:"}\n`,
  );
  for (const item of items) {
    const json = Buffer.concat(itemParts(item, context)).toString();
    yield Buffer.from(toYaml(`{"items":[${json}]}`).slice("items:\n".length));
  }
  yield Buffer.from(toYaml(JSON.stringify(rest)));
}

/** Its length is part of its head, so all items are written before the first byte can go out. */
function protobufList(
  list: ListHead,
  items: readonly Stored[],
  { kind, form, version }: RenderContext,
): Uint8Array[] {
  const messages = items.map((item) =>
    form.as === undefined
      ? messageBytes(kind.group, kind.kind, item, version)
      : messageBytes("meta.k8s.io", "PartialObjectMetadata", item),
  );
  const parts = messages.flatMap((message) => [itemHead(message.length), message]);
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return [
    listHead(list.apiVersion, list.kind, list.metadata as Readonly<Record<string, unknown>>, bytes),
    ...parts,
  ];
}

const lineEnd = Buffer.from("}\n");
const eventHeads = new Map(
  ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"].map((type) => [
    type,
    Buffer.from(`{"type":"${type}","object":`),
  ]),
);

/** One event of a watch: a line of JSON, or a frame. `first` rows of a table stream carry the columns. */
export function renderEvent(
  type: string,
  object: KubeObject,
  context: RenderContext,
  first: boolean,
): readonly Uint8Array[] {
  const shown = eventObject(type, object, context, first);
  if (context.form.encoding === "protobuf") {
    return [watchFrame(type, objectToProtobuf(inVersion(shown, context)) ?? Buffer.alloc(0))];
  }
  return [eventHeads.get(type) as Buffer, ...objectBytes(shown, context), lineEnd];
}

function eventObject(type: string, object: KubeObject, context: RenderContext, first: boolean): KubeObject {
  if (type === "ERROR" || context.form.as === undefined) return object;
  if (context.form.as !== "Table") return partial(object, context.form);
  const { columnDefinitions, ...table } = tableOf([object as Stored], context);
  const metadata = { resourceVersion: object.metadata?.resourceVersion };
  return { ...table, metadata, columnDefinitions: first ? columnDefinitions : null } as unknown as KubeObject;
}

/** The object of a bookmark: nothing but a version. */
export function bookmarkObject(item: WatchItem & { type: "BOOKMARK" }, context: RenderContext): KubeObject {
  const annotations = { "k8s.io/initial-events-end": "true" };
  const metadata = {
    resourceVersion: item.resourceVersion,
    ...(item.initialEventsEnd === true ? { annotations } : {}),
  } as never;
  return { kind: context.kind.kind, apiVersion: apiVersionOf(context), metadata };
}
