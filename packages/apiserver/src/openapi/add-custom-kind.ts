/** Schemas of custom resources as the documents have them (apiextensions-apiserver pkg/controller/openapi/builder). */
import type { CustomSchema } from "../api/custom-schema.ts";
import type { Kind } from "../api/kind.ts";
import type { GroupVersionKind, Schema } from "./model.ts";
import type { TypeSchemas } from "./type-schemas.ts";
import { wordsOf } from "./words.ts";

/** `com.example.stable.v1.CronTab`. */
export function customSchemaName({ group, version, kind }: GroupVersionKind): string {
  return `${group.split(".").reverse().join(".")}.${version}.${kind}`;
}

/** Puts in the schemas of a custom kind and of its list. */
export function addCustomKind(
  schemas: TypeSchemas,
  kind: Kind,
  gvk: GroupVersionKind,
  openApi: "v2" | "v3",
): string {
  const name = customSchemaName(gvk);
  const given = kind.custom?.schemaOf(gvk.version);
  const base = given === undefined ? { type: "object" } : openApi === "v3" ? inV3(given) : inV2(given);
  const top = ["apiVersion", "kind"].map((member) => {
    const description = wordsOf("meta.v1.TypeMeta", member);
    return [member, { type: "string", ...(description === undefined ? {} : { description }) }] as const;
  });
  const isKnown = given !== undefined && base.type !== undefined;
  const properties = isKnown
    ? { ...base.properties, ...Object.fromEntries(top), metadata: schemas.ref("meta.v1.ObjectMeta") }
    : undefined;
  schemas.add(name, {
    ...base,
    ...(properties === undefined ? {} : { properties }),
    "x-kubernetes-group-version-kind": [gvk],
  });
  const list = { ...gvk, kind: kind.custom?.listKind ?? `${gvk.kind}List` };
  schemas.add(`${name}List`, {
    ...schemas.listSchema(name, gvk.kind),
    "x-kubernetes-group-version-kind": [list],
  });
  return name;
}

/** As it is written, without what documents of version 3 do not have. */
function inV3(schema: CustomSchema): Schema {
  const { $schema: _s, id: _i, definitions: _d, dependencies: _p, externalDocs: _e, ...rest } = schema;
  return rest as Schema;
}

/**
 * What kubectl makes of version 2: choices between schemas are left out, and where anything may stand nothing is
 * said.
 */
function inV2(schema: CustomSchema): Schema {
  const anything =
    schema.nullable === true ||
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    schema["x-kubernetes-int-or-string"] === true;
  const kept: { -readonly [K in keyof Schema]: Schema[K] } = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key.startsWith("x-") && key !== "x-kubernetes-validations") {
      kept[key as `x-${string}`] = value;
    }
  }
  if (schema.description !== undefined) kept.description = schema.description;
  if (anything) return kept;
  if (schema.type !== undefined) kept.type = schema.type;
  if (schema.format !== undefined) kept.format = schema.format;
  if (schema.required !== undefined) kept.required = schema.required;
  if (schema.items !== undefined) kept.items = inV2(schema.items);
  if (typeof schema.additionalProperties === "object") {
    kept.additionalProperties = inV2(schema.additionalProperties);
  }
  if (schema.properties !== undefined) {
    kept.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([member, of]) => [member, inV2(of)]),
    );
  }
  return kept;
}
