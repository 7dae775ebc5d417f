/**
 * Fills in the defaults of a structural schema, on every write and every read (apiextensions-apiserver
 * schema/defaulting). A null where the schema allows none counts as not given.
 */
import type { CustomSchema } from "./custom-schema.ts";
import { mapList, mapObject, own } from "./prune.ts";

type Json = Readonly<Record<string, unknown>>;

/** The value with the defaults; itself when there is nothing to fill in. Pure and idempotent. */
export function withDefaults<T>(value: T, schema: CustomSchema | undefined): T {
  return fill(value, schema) as T;
}

function fill(value: unknown, schema: CustomSchema | undefined): unknown {
  if (schema === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const { items } = schema;
    return mapList(value, (item) => {
      const given = isUnwantedNull(item, items) && items?.default !== undefined ? items.default : item;
      return fill(given, items);
    });
  }
  const { properties = {}, additionalProperties } = schema;
  const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
  const missing: [string, unknown][] = [];
  for (const [key, property] of Object.entries(properties)) {
    if (property.default === undefined || Object.hasOwn(value, key)) continue;
    missing.push([key, fill(property.default, property)]);
  }
  const filled = mapObject(value as Json, (key, member) => {
    const property = own(properties, key) ?? others;
    if (!isUnwantedNull(member, property)) return fill(member, property);
    // Without a default, the null goes.
    return property?.default === undefined ? undefined : fill(property.default, property);
  });
  return missing.length === 0 ? filled : { ...filled, ...Object.fromEntries(missing) };
}

function isUnwantedNull(value: unknown, schema: CustomSchema | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true;
}
