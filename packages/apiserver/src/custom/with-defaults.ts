/**
 * Fills in the defaults of a structural schema, on every write and every read (apiextensions-apiserver
 * schema/defaulting). A null where the schema allows none counts as not given.
 */

import type { CustomSchema } from "../api/custom-schema.ts";
import { apiError } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import { setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import { mapList, mapObject, own } from "./prune.ts";

type Json = Readonly<Record<string, unknown>>;

/** Most that defaults may add to one object, in characters of JSON: as much as a whole request may have. */
const addedMax = 3 * 1024 * 1024;

/**
 * The value with the defaults; itself when there is nothing to fill in. Pure and idempotent.
 * @throws KubeApiError 422 when they make the object too large
 */
export function withDefaults<T>(value: T, schema: CustomSchema | undefined): T {
  return new Filling().fill(value, schema) as T;
}

/** A default with the defaults within it. */
interface Default {
  readonly value: unknown;
  /** Characters of its JSON. */
  readonly length: number;
}

const ofSchemas = new WeakMap<CustomSchema, Default>();

function defaultOf(schema: CustomSchema): Default {
  let known = ofSchemas.get(schema);
  if (known === undefined) {
    const value = withDefaults(schema.default, schema);
    known = { value, length: toJson(value).length };
    ofSchemas.set(schema, known);
  }
  return known;
}

type Properties = NonNullable<CustomSchema["properties"]>;

const withDefault = new WeakMap<Properties, readonly (readonly [string, CustomSchema])[]>();

/** The properties that have a default. */
function defaultedOf(properties: Properties): readonly (readonly [string, CustomSchema])[] {
  let known = withDefault.get(properties);
  if (known === undefined) {
    known = Object.entries(properties).filter(([, property]) => property.default !== undefined);
    withDefault.set(properties, known);
  }
  return known;
}

const noProperties: Properties = {};

/** Fills one object. */
class Filling {
  #added = 0;

  fill(value: unknown, schema: CustomSchema | undefined): unknown {
    if (schema === undefined || typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const { items } = schema;
      return mapList(value, (item) => {
        const isMissing = isUnwantedNull(item, items) && items?.default !== undefined;
        return isMissing ? this.#add("", items) : this.fill(item, items);
      });
    }
    const { properties = noProperties, additionalProperties } = schema;
    const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
    const filled = mapObject(value as Json, (key, member) => {
      const property = own(properties, key) ?? others;
      if (property === undefined || !isUnwantedNull(member, property)) return this.fill(member, property);
      // Without a default, the null goes.
      return property.default === undefined ? undefined : this.#add(key, property);
    });
    let result: Record<string, unknown> | undefined;
    for (const [key, property] of defaultedOf(properties)) {
      spendTime();
      if (Object.hasOwn(value, key)) continue;
      result ??= { ...filled };
      setMember(result, key, this.#add(key, property));
    }
    return result ?? filled;
  }

  #add(key: string, schema: CustomSchema): unknown {
    const { value, length } = defaultOf(schema);
    this.#added += key.length + length + 1;
    if (this.#added <= addedMax) return value;
    const message = `the defaults of its schema would add more than ${addedMax} characters to the object`;
    throw apiError(422, "Invalid", message);
  }
}

function isUnwantedNull(value: unknown, schema: CustomSchema | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true;
}
