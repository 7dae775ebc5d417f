/** The OpenAPI v2 document of the kinds that are served, made from the schema's types. */
import type { Kind } from "../registry/kind.ts";
import { mergeRules } from "../schema/merge-rules.ts";
import { type Member, structNameOf, structNames, structOf, type TypeRef } from "../schema/schema.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { gitVersionOf } from "./discovery.ts";

/** A JSON schema as OpenAPI v2 knows it, as far as we use it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly [extension: `x-${string}`]: unknown;
}

/** One operation: what clients look for in it is its parameters and the kind it is for. */
export interface Operation {
  readonly operationId: string;
  readonly parameters: readonly QueryParameter[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
  readonly "x-kubernetes-group-version-kind": GroupVersionKind;
}

/** A parameter of a query. */
export interface QueryParameter {
  readonly name: string;
  readonly in: "query";
  readonly type: string;
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The whole document. */
export interface OpenApiDocument {
  readonly swagger: "2.0";
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

const metaPrefix = "io.k8s.apimachinery.pkg.apis.";
const quantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const intOrStringName = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/** `core.v1.Pod` as the document names it. */
function definitionName(struct: string): string {
  return struct.startsWith("meta.") ? `${metaPrefix}${struct}` : `io.k8s.api.${struct}`;
}

/** The document for these kinds. */
export function openApiDocument(kinds: readonly Kind[], version: EmulatedVersion): OpenApiDocument {
  const definitions: Record<string, Schema> = {
    [quantityName]: {
      type: "string",
      description: "A quantity: a number with an optional suffix, such as 10Gi.",
    },
    [intOrStringName]: { type: "string", format: "int-or-string" },
    [`${metaPrefix}meta.v1.Time`]: { type: "string", format: "date-time" },
    [`${metaPrefix}meta.v1.MicroTime`]: { type: "string", format: "date-time" },
  };
  for (const name of structNames()) {
    // A list type would have to name its items; clients look at objects only.
    if (name.endsWith("List") && !name.startsWith("meta.")) continue;
    definitions[definitionName(name)] = structSchema(name);
  }
  const paths: Record<string, Record<string, Operation>> = {};
  for (const kind of kinds) {
    for (const version of kind.versions) {
      const gvk = { group: kind.group, version, kind: kind.kind };
      addKind(definitions, kind, gvk);
      addPaths(paths, kind, gvk);
    }
  }
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: gitVersionOf(version).replace(/[+].*/, "") },
    paths,
    definitions,
  };
}

function addKind(definitions: Record<string, Schema>, kind: Kind, gvk: GroupVersionKind): void {
  const base = definitionName(structNameOf(kind.group, kind.kind));
  const name = base.replace(/\.v1\.(\w+)$/, `.${gvk.version}.$1`);
  const schema = definitions[base] ?? { type: "object" };
  definitions[name] = { ...schema, "x-kubernetes-group-version-kind": [gvk] };
}

function addPaths(paths: Record<string, Record<string, Operation>>, kind: Kind, gvk: GroupVersionKind): void {
  const root = kind.group === "" ? `/api/${gvk.version}` : `/apis/${kind.group}/${gvk.version}`;
  const collection = `${root}/${kind.namespaced ? "namespaces/{namespace}/" : ""}${kind.plural}`;
  const operation = (verb: string, ...parameters: readonly string[]): Operation => ({
    operationId: `${verb}${kind.group.split(".")[0] || "core"}${gvk.version}${kind.kind}`,
    parameters: parameters.map((name) => ({ name, in: "query", type: "string" })),
    responses: { "200": { description: "OK" } },
    "x-kubernetes-group-version-kind": gvk,
  });
  paths[collection] = { get: operation("list"), post: operation("create", "dryRun") };
  if (kind.namespaced) paths[`${root}/${kind.plural}`] = { get: operation("listAll") };
  paths[`${collection}/{name}`] = {
    get: operation("read"),
    put: operation("replace", "dryRun"),
    patch: operation("patch", "dryRun", "fieldManager", "force"),
    delete: operation("delete", "dryRun"),
  };
}

function structSchema(name: string): Schema {
  const members = [...(structOf(name)?.values() ?? [])];
  const required = members.filter((member) => member.required).map((member) => member.name);
  const properties = Object.fromEntries(members.map((m) => [m.name, memberSchema(name, m)]));
  return {
    type: "object",
    ...(required.length === 0 ? {} : { required }),
    ...(members.length === 0 ? {} : { properties }),
  };
}

function memberSchema(struct: string, member: Member): Schema {
  const rule = mergeRules[`${struct}.${member.name}`];
  const extensions: Record<`x-${string}`, unknown> = {};
  if (rule?.mergeKey !== undefined) extensions["x-kubernetes-patch-merge-key"] = rule.mergeKey;
  if (rule?.strategy !== undefined) extensions["x-kubernetes-patch-strategy"] = rule.strategy;
  if (rule?.listType !== undefined) extensions["x-kubernetes-list-type"] = rule.listType;
  if (rule?.listMapKeys !== undefined) extensions["x-kubernetes-list-map-keys"] = rule.listMapKeys;
  return { ...typeSchema(member.type), ...extensions };
}

function typeSchema(type: TypeRef): Schema {
  switch (type.form) {
    case "string":
      return { type: "string" };
    case "integer":
      return { type: "integer", format: "int64" };
    case "boolean":
      return { type: "boolean" };
    case "any":
      return { type: "object" };
    case "quantity":
      return { $ref: `#/definitions/${quantityName}` };
    case "intOrString":
      return { $ref: `#/definitions/${intOrStringName}` };
    case "time":
      return { $ref: `#/definitions/${metaPrefix}meta.v1.Time` };
    case "microTime":
      return { $ref: `#/definitions/${metaPrefix}meta.v1.MicroTime` };
    case "list":
      return { type: "array", items: typeSchema(type.of) };
    case "map":
      return { type: "object", additionalProperties: typeSchema(type.of) };
    case "struct":
      return { $ref: `#/definitions/${definitionName(type.name)}` };
  }
}
