/**
 * Ratcheting: what was wrong before, and has not been touched by an update, is let be (KEP-4008; from 1.30 on). Only
 * rules of the values themselves are: what a schema says of how members stand together is told always.
 */
import type { FieldProblem } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
import type { CustomSchema } from "./custom-schema.ts";
import { keysOf } from "./list-types.ts";
import { canonical } from "./validate-value.ts";

/** The problems without those at values that are as they were. Pure. */
export function unchangedProblems(
  problems: readonly FieldProblem[],
  object: unknown,
  old: unknown,
  schema: CustomSchema,
): readonly FieldProblem[] {
  return problems.filter(({ field }) => {
    const steps = stepsOf(field);
    return steps === undefined || !isUnchanged(object, old, schema, steps);
  });
}

/** `spec.list[2].name` as steps; undefined for what is no path. */
function stepsOf(field: string): readonly string[] | undefined {
  if (field === "" || field.startsWith("<")) return undefined;
  return field.split(/[.[\]]+/).filter((step) => step !== "");
}

function isUnchanged(
  value: unknown,
  old: unknown,
  schema: CustomSchema | undefined,
  steps: readonly string[],
): boolean {
  if (old === undefined) return false;
  if (steps.length === 0 || sameJson(value, old)) return value !== undefined && sameJson(value, old);
  const [step = "", ...rest] = steps;
  if (Array.isArray(value)) {
    if (!Array.isArray(old) || !/^\d+$/.test(step)) return false;
    const item = value[Number(step)] as unknown;
    return isUnchanged(item, correspondingItem(item, old, schema), schema?.items, rest);
  }
  if (typeof value !== "object" || value === null || typeof old !== "object" || old === null) return false;
  const key = longestKey(value, steps);
  if (key === undefined) return false;
  const { properties, additionalProperties } = schema ?? {};
  const member =
    properties?.[key] ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
  return isUnchanged(
    (value as Record<string, unknown>)[key],
    (old as Record<string, unknown>)[key],
    member,
    steps.slice(key.split(".").length),
  );
}

/** Keys of maps may have dots in them. */
function longestKey(value: object, steps: readonly string[]): string | undefined {
  for (let count = steps.length; count > 0; count--) {
    const key = steps.slice(0, count).join(".");
    if (Object.hasOwn(value, key)) return key;
  }
  return undefined;
}

/** The item that it was: found by its keys in a map; items of other lists cannot be told apart. */
export function correspondingItem(
  item: unknown,
  old: readonly unknown[],
  schema: CustomSchema | undefined,
): unknown {
  if (schema?.["x-kubernetes-list-type"] !== "map") return undefined;
  const keys = canonical(keysOf(item, schema));
  return old.find((other) => canonical(keysOf(other, schema)) === keys);
}
