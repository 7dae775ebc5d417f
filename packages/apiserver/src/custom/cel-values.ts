/** Values of custom resources as rules see them, by their schema (apiextensions-apiserver schema/cel/values.go). */
import type { CustomSchema } from "../api/custom-schema.ts";
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
    // First, since the others add underscores.
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(escaped) ? escaped : undefined;
}

/** Turns values of one object into what rules see, each part of it once however many rules look at it. */
export class RuleValues {
  readonly #known = new WeakMap<CustomSchema, WeakMap<object, unknown>>();

  /** @param isResource the value is an object with metadata, of which rules see the names */
  of(value: unknown, schema: CustomSchema, isResource = isEmbedded(schema)): unknown {
    if (value === null || value === undefined) return null;
    if (typeof value !== "object") return scalarForRules(value, schema);
    let known = this.#known.get(schema);
    if (known === undefined) {
      known = new WeakMap();
      this.#known.set(schema, known);
    }
    let made = known.get(value);
    if (made === undefined) {
      made = Array.isArray(value)
        ? value.map((item) => this.of(item, schema.items ?? noSchema))
        : this.#object(value as Json, schema, isResource);
      known.set(value, made);
    }
    return made;
  }

  /** A Map, in which a member is found at once and none is inherited. */
  #object(value: Json, schema: CustomSchema, isResource: boolean): unknown {
    const result = new Map<string, unknown>();
    const { additionalProperties } = schema;
    if (typeof additionalProperties === "object") {
      for (const [key, member] of Object.entries(value))
        result.set(key, this.of(member, additionalProperties));
      return result;
    }
    for (const [key, member] of Object.entries(value)) {
      const name = escapedName(key);
      if (name === undefined) continue;
      const property = own(schema.properties, key);
      if (isResource && (key === "apiVersion" || key === "kind")) result.set(name, String(member));
      else if (isResource && key === "metadata") result.set(name, namesOf(member));
      else if (property !== undefined) result.set(name, this.of(member, property));
    }
    return result;
  }
}

const noSchema: CustomSchema = {};

function scalarForRules(value: unknown, schema: CustomSchema): unknown {
  if (typeof value === "number") {
    // CEL distinguishes integers and doubles, which JSON does not.
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

/** True when the schema describes an object of its own (`x-kubernetes-embedded-resource`). */
export function isEmbedded(schema: CustomSchema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

function namesOf(metadata: unknown): unknown {
  const { name, generateName } = (metadata ?? {}) as { name?: string; generateName?: string };
  const names = new Map<string, unknown>();
  if (name !== undefined) names.set("name", name);
  if (generateName !== undefined) names.set("generateName", generateName);
  return names;
}
