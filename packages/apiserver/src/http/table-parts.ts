/** Answers as tables, as `kubectl get` shows them. */

import type { KubeObject, Stored } from "@longshore/kube";
import type { Column } from "../api/column.ts";
import { badRequest } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { columnsOf, descriptionOf, podConditions } from "../tables/index.ts";
import type { AnswerForm } from "./negotiate.ts";
import { inVersion, type RenderContext } from "./render-context.ts";

/** The version of the group of tables that the client requested. */
export function metaVersion(form: AnswerForm): string {
  return `meta.k8s.io/${form.version}`;
}

/** Nothing but the metadata of an object. */
export function partial(object: KubeObject, form: AnswerForm): KubeObject {
  const { metadata = {} } = object;
  return { kind: "PartialObjectMetadata", apiVersion: metaVersion(form), metadata };
}

/** A table of a few objects. */
export function tableOf(objects: readonly Stored[], context: RenderContext) {
  const columns = columnsOf(context.kind, context.version, context.emulated);
  return { ...headOf(columns, context), rows: objects.map((object) => rowOf(object, columns, context)) };
}

/** A table of any number of objects as JSON, made row by row. */
export function tableParts(
  objects: readonly Stored[],
  metadata: object,
  context: RenderContext,
): Iterable<Uint8Array> {
  const columns = columnsOf(context.kind, context.version, context.emulated);
  const head = JSON.stringify({ ...headOf(columns, context), metadata });
  return (function* () {
    yield Buffer.from(`${head.slice(0, -1)},"rows":[`);
    let separator = "";
    for (const object of objects) {
      yield Buffer.from(`${separator}${toJson(rowOf(object, columns, context))}`);
      separator = ",";
    }
    yield Buffer.from("]}");
  })();
}

/** @throws KubeApiError 400 for rows that are to hold what they cannot */
function headOf(
  columns: readonly Column[],
  { kind, emulated, form, includeObject = "Metadata" }: RenderContext,
) {
  if (!["None", "Metadata", "Object", ""].includes(includeObject)) {
    throw badRequest(`unrecognized includeObject value: ${JSON.stringify(includeObject)}`);
  }
  return {
    kind: "Table",
    apiVersion: metaVersion(form),
    metadata: {},
    columnDefinitions: columns.map((column) => {
      const { name, type, format = "", priority = 0 } = column;
      return { name, type, format, description: descriptionOf(kind, column, emulated), priority };
    }),
  };
}

function rowOf(object: Stored, columns: readonly Column[], context: RenderContext) {
  const { kind, form, includeObject = "Metadata", now } = context;
  const conditions = kind.kind === "Pod" && kind.group === "" ? podConditions(object) : undefined;
  const shown = includeObject === "Object" ? inVersion(object, context) : partial(object, form);
  return {
    cells: columns.map((column) => column.cell(object, now) ?? null),
    ...(conditions === undefined ? {} : { conditions }),
    object: includeObject === "None" ? null : shown,
  };
}
