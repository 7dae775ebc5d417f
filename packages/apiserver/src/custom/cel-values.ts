/** Values of custom resources as rules see them, by their schema (apiextensions-apiserver schema/cel/values.go). */
import type { CustomSchema } from "./custom-schema.ts";
import { own } from "./prune.ts";

type Json = Readonly<Record<string, unknown>>;

/** Words that CEL keeps for itself. */
const reserved: ReadonlySet<string> = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

/** The name of a member in rules: what CEL has no letters for is written out (CRD documentation, escaping). */
export function escapedName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`;
  const escaped = name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(escaped) ? escaped : undefined;
}

/** @param isResource the value is an object with metadata, of which rules see the names */
export function valueForRules(value: unknown, schema: CustomSchema, isResource = false): unknown {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((item) => valueForRules(item, schema.items ?? {}));
  if (typeof value === "object") return objectForRules(value as Json, schema, isResource);
  if (typeof value === "number") {
    const whole = schema.type !== "number" && Number.isInteger(value);
    return whole ? BigInt(value) : value;
  }
  if (typeof value !== "string") return value;
  switch (schema.format) {
    case "date":
    case "date-time": {
      const date = new Date(value);
      return Number.isNaN(date.getTime()) ? value : date;
    }
    case "byte":
      return new Uint8Array(Buffer.from(value, "base64"));
    default:
      return value;
  }
}

function objectForRules(value: Json, schema: CustomSchema, isResource: boolean): unknown {
  const result: Record<string, unknown> = Object.create(null);
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    for (const [key, member] of Object.entries(value))
      result[key] = valueForRules(member, additionalProperties);
    return result;
  }
  for (const [key, member] of Object.entries(value)) {
    const name = escapedName(key);
    if (name === undefined) continue;
    const property = own(schema.properties, key);
    if (isResource && (key === "apiVersion" || key === "kind")) result[name] = member;
    else if (isResource && key === "metadata") result[name] = namesOf(member);
    else if (property !== undefined) result[name] = valueForRules(member, property, isEmbedded(property));
  }
  return result;
}

export function isEmbedded(schema: CustomSchema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

function namesOf(metadata: unknown): unknown {
  const { name, generateName } = (metadata ?? {}) as { name?: string; generateName?: string };
  return Object.assign(Object.create(null), {
    ...(name === undefined ? {} : { name }),
    ...(generateName === undefined ? {} : { generateName }),
  });
}
