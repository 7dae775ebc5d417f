/** Items that a list must not have twice: those of sets and maps (apiextensions-apiserver schema/listtype). */
import { duplicateValue, type FieldProblem } from "../api/errors.ts";
import type { CustomSchema } from "./custom-schema.ts";
import { own } from "./prune.ts";
import { canonical } from "./validate-value.ts";

/** Problems of all lists in the value. Pure. */
export function listTypeProblems(value: unknown, schema: CustomSchema | undefined, at = ""): FieldProblem[] {
  if (schema === undefined || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) {
    return [
      ...duplicates(value, schema, at),
      ...value.flatMap((item, i) => listTypeProblems(item, schema.items, `${at}[${i}]`)),
    ];
  }
  const { properties, additionalProperties } = schema;
  return Object.entries(value).flatMap(([key, member]) => {
    const known = own(properties, key);
    if (known !== undefined) return listTypeProblems(member, known, at === "" ? key : `${at}.${key}`);
    return typeof additionalProperties === "object"
      ? listTypeProblems(member, additionalProperties, `${at}[${key}]`)
      : [];
  });
}

function duplicates(list: readonly unknown[], schema: CustomSchema, at: string): FieldProblem[] {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "set" && type !== "map") return [];
  const seen = new Set<string>();
  const told = new Set<string>();
  const problems: FieldProblem[] = [];
  for (const [i, item] of list.entries()) {
    const shown = type === "set" ? item : keysOf(item, schema);
    const key = canonical(shown);
    if (seen.has(key) && !told.has(key)) {
      told.add(key);
      problems.push(duplicateValue(`${at}[${i}]`, shown));
    }
    seen.add(key);
  }
  return problems;
}

/** The values of the keys that tell the items of a map apart; a key that is not given has its default. */
export function keysOf(item: unknown, schema: CustomSchema): Readonly<Record<string, unknown>> {
  const keys: Record<string, unknown> = {};
  if (typeof item !== "object" || item === null) return keys;
  for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
    const value = own(item as Record<string, unknown>, key) ?? own(schema.items?.properties, key)?.default;
    if (value !== undefined) keys[key] = value;
  }
  return keys;
}
