/** Turns the registry's answers into the bytes of a response. */
import type { KubeObject, Stored } from "@longshore/kube";
import { dump } from "js-yaml";
import { badRequest } from "../api/errors.ts";
import { type Kind, resourceKey } from "../registry/kind.ts";
import type { ListAnswer } from "../registry/request.ts";
import type { AnswerForm } from "./negotiate.ts";
import { columnsOf } from "./table-columns.ts";

/** What the table of an answer needs to know beside its objects. */
export interface RenderContext {
  readonly kind: Kind;
  /** Version of the API in which the client asked. */
  readonly version: string;
  readonly form: AnswerForm;
  readonly includeObject: string | undefined;
  readonly now: Date;
}

/** JSON of stored objects, made once: they never change. */
const fullTexts = new WeakMap<object, string>();
const itemTexts = new WeakMap<object, string>();

/** The object in the version that the client asked for. */
function inVersion<T extends KubeObject>(object: T, { kind, version }: RenderContext): T {
  const apiVersion = kind.group === "" ? version : `${kind.group}/${version}`;
  return object.kind !== kind.kind || object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

function textOf(object: KubeObject): string {
  let text = fullTexts.get(object);
  if (text === undefined) {
    text = JSON.stringify(object);
    if (Object.isFrozen(object)) fullTexts.set(object, text);
  }
  return text;
}

function itemTextOf(object: KubeObject): string {
  let text = itemTexts.get(object);
  if (text === undefined) {
    const { kind: _k, apiVersion: _a, ...rest } = object;
    text = JSON.stringify(rest);
    if (Object.isFrozen(object)) itemTexts.set(object, text);
  }
  return text;
}

/** One object (or Status) as the client wants it, in JSON. */
export function renderObject(object: KubeObject, context: RenderContext): string {
  const { as } = context.form;
  if (object.kind === "Status" && context.kind.kind !== "Status") return textOf(object);
  if (as === "Table") {
    const table = tableOf([object as Stored], context);
    return JSON.stringify({ ...table, metadata: { resourceVersion: object.metadata?.resourceVersion } });
  }
  if (as === "PartialObjectMetadata") return JSON.stringify(partial(object, context));
  if (as !== undefined) throw badRequest(`you requested ${as}, but this is a single object`);
  return textOf(inVersion(object, context));
}

/** A list as the client wants it, in JSON. */
export function renderList(answer: ListAnswer, context: RenderContext): string {
  const metadata = {
    resourceVersion: answer.resourceVersion,
    ...(answer.continue === undefined ? {} : { continue: answer.continue }),
    ...(answer.remaining === undefined ? {} : { remainingItemCount: answer.remaining }),
  };
  const { kind, version, form } = context;
  if (form.as === "Table") return JSON.stringify({ ...tableOf(answer.items, context), metadata });
  if (form.as === "PartialObjectMetadataList") {
    const items = answer.items.map((item) => partial(item, context));
    return JSON.stringify({
      kind: "PartialObjectMetadataList",
      apiVersion: metaVersion(form),
      metadata,
      items,
    });
  }
  if (form.as !== undefined) throw badRequest(`you requested ${form.as}, but this is a list`);
  const apiVersion = kind.group === "" ? version : `${kind.group}/${version}`;
  const head = JSON.stringify({ kind: `${kind.kind}List`, apiVersion, metadata });
  return `${head.slice(0, -1)},"items":[${answer.items.map(itemTextOf).join(",")}]}`;
}

/** One event of a watch: a line of JSON. `first` rows of a table stream carry the columns. */
export function renderEvent(
  type: string,
  object: KubeObject,
  context: RenderContext,
  first: boolean,
): string {
  if (type === "ERROR") return `{"type":"ERROR","object":${textOf(object)}}\n`;
  if (context.form.as === "Table") {
    const { columnDefinitions, ...table } = tableOf([object as Stored], context);
    const body = {
      ...table,
      metadata: { resourceVersion: object.metadata?.resourceVersion },
      columnDefinitions: first ? columnDefinitions : null,
    };
    return `{"type":"${type}","object":${JSON.stringify(body)}}\n`;
  }
  if (context.form.as !== undefined) {
    return `{"type":"${type}","object":${JSON.stringify(partial(object, context))}}\n`;
  }
  return `{"type":"${type}","object":${textOf(inVersion(object, context))}}\n`;
}

/** The object of a bookmark: nothing but a version. */
export function bookmarkObject(resourceVersion: string, { kind, version }: RenderContext): KubeObject {
  const apiVersion = kind.group === "" ? version : `${kind.group}/${version}`;
  return { kind: kind.kind, apiVersion, metadata: { resourceVersion } as never };
}

function metaVersion(form: AnswerForm): string {
  return `meta.k8s.io/${form.version}`;
}

function partial(object: KubeObject, { form }: RenderContext): object {
  return { kind: "PartialObjectMetadata", apiVersion: metaVersion(form), metadata: object.metadata };
}

function tableOf(objects: readonly Stored[], context: RenderContext) {
  const { kind, form, includeObject = "Metadata", now } = context;
  if (!["None", "Metadata", "Object", ""].includes(includeObject)) {
    throw badRequest(`unrecognized includeObject value: ${JSON.stringify(includeObject)}`);
  }
  const columns = columnsOf(resourceKey(kind));
  const rowObject = (object: Stored) => {
    if (includeObject === "None") return null;
    return includeObject === "Object" ? inVersion(object, context) : partial(object, context);
  };
  return {
    kind: "Table",
    apiVersion: metaVersion(form),
    metadata: {},
    columnDefinitions: columns.map(({ name, type, format = "", priority = 0 }) => ({
      name,
      type,
      format,
      description: `${name} of the ${kind.kind}`,
      priority,
    })),
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, now) ?? null),
      object: rowObject(object),
    })),
  };
}

/** JSON text as YAML, members in order of their names, as the real server writes it. */
export function toYaml(json: string): string {
  return dump(JSON.parse(json), { sortKeys: true, noRefs: true, lineWidth: -1, quoteStyle: "double" });
}
