/** Items that a list must not have twice: those of sets and maps (apiextensions-apiserver schema/listtype). */

import type { CustomSchema } from "../api/custom-schema.ts";
import { duplicateValue, type FieldProblem } from "../api/errors.ts";
import { toSortedJson } from "../api/json.ts";
import { addProblems, memberPath, pathWithin } from "./add-problems.ts";
import { own } from "./prune.ts";

/** Problems of all lists in the value. Pure. */
export function listTypeProblems(value: unknown, schema: CustomSchema | undefined, at = ""): FieldProblem[] {
  const problems: FieldProblem[] = [];
  look(value, schema, at, problems);
  return problems;
}

function look(value: unknown, schema: CustomSchema | undefined, at: string, problems: FieldProblem[]): void {
  if (schema === undefined || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    addProblems(problems, duplicates(value, schema, at));
    const { items } = schema;
    if (items === undefined) return;
    for (const [i, item] of value.entries()) {
      if (typeof item === "object") look(item, items, pathWithin(at, `[${i}]`), problems);
    }
    return;
  }
  const { properties, additionalProperties } = schema;
  const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
  for (const [key, member] of Object.entries(value)) {
    const known = own(properties, key);
    if (known !== undefined) look(member, known, memberPath(at, key), problems);
    else if (others !== undefined) look(member, others, pathWithin(at, `[${key}]`), problems);
  }
}

function* duplicates(list: readonly unknown[], schema: CustomSchema, at: string): Iterable<FieldProblem> {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "set" && type !== "map") return;
  const seen = new Set<string>();
  const reported = new Set<string>();
  for (const [i, item] of list.entries()) {
    const shown = type === "set" ? item : keysOf(item, schema);
    const key = toSortedJson(shown);
    if (seen.has(key) && !reported.has(key)) {
      reported.add(key);
      yield duplicateValue(pathWithin(at, `[${i}]`), shown);
    }
    seen.add(key);
  }
}

/** The key values that identify the items of a map; a missing key has its default. */
export function keysOf(item: unknown, schema: CustomSchema): Readonly<Record<string, unknown>> {
  const keys: Record<string, unknown> = {};
  if (typeof item !== "object" || item === null) return keys;
  for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
    const value = own(item as Record<string, unknown>, key) ?? own(schema.items?.properties, key)?.default;
    if (value !== undefined) keys[key] = value;
  }
  return keys;
}
