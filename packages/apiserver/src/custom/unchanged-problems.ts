/**
 * Ratcheting: an update may keep invalid values that it does not change (KEP-4008; from 1.30 on). This applies only to
 * rules for single values: violations of rules that combine members are always reported.
 */

import type { CustomSchema } from "../api/custom-schema.ts";
import type { FieldProblem } from "../api/errors.ts";
import { toSortedJson } from "../api/json.ts";
import { isWhole } from "./add-problems.ts";
import { keysOf } from "./list-type-problems.ts";

/** The problems without those at values that are as they were. Pure. */
export function unchangedProblems(
  problems: readonly FieldProblem[],
  object: unknown,
  old: unknown,
  schema: CustomSchema,
): readonly FieldProblem[] {
  const correlation = new Correlation();
  return problems.filter(({ field }) => {
    const steps = stepsOf(field);
    return steps === undefined || !correlation.isUnchanged(object, old, schema, steps);
  });
}

/** Maximum number of dots in a map key that is looked up: with more dots, a problem is always reported. */
const dotsMax = 64;

/** `spec.list[2].name` as steps; undefined for what is no path. */
function stepsOf(field: string): readonly string[] | undefined {
  if (field === "" || field.startsWith("<") || !isWhole(field)) return undefined;
  return field.split(/[.[\]]+/).filter((step) => step !== "");
}

/**
 * Finds the parts of one object that an update left unchanged. Each pair of values is compared only once, and the
 * items of a list are indexed only once.
 */
export class Correlation {
  readonly #same = new WeakMap<object, WeakMap<object, boolean>>();
  readonly #items = new WeakMap<readonly unknown[], ReadonlyMap<string, unknown>>();
  #compared = 0;

  /** Values that have been compared. */
  get compared(): number {
    return this.#compared;
  }

  /** True when both are the same JSON value. */
  isSame(a: unknown, b: unknown): boolean {
    if (a === b) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    let known = this.#same.get(a);
    if (known === undefined) {
      known = new WeakMap();
      this.#same.set(a, known);
    }
    let same = known.get(b);
    if (same === undefined) {
      this.#compared++;
      same = this.#compare(a, b);
      known.set(b, same);
    }
    return same;
  }

  #compare(a: object, b: object): boolean {
    if (Array.isArray(a) || Array.isArray(b)) {
      if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
      return a.every((item, i) => this.isSame(item, b[i]));
    }
    const left = a as Record<string, unknown>;
    const right = b as Record<string, unknown>;
    const keys = Object.keys(left);
    if (keys.length !== Object.keys(right).length) return false;
    return keys.every((key) => Object.hasOwn(right, key) && this.isSame(left[key], right[key]));
  }

  /** The old version of the item: found by its keys in a map; items of other lists have no identity. */
  itemOf(item: unknown, old: readonly unknown[], schema: CustomSchema | undefined): unknown {
    if (schema?.["x-kubernetes-list-type"] !== "map") return undefined;
    let items = this.#items.get(old);
    if (items === undefined) {
      const byKeys = new Map<string, unknown>();
      for (const one of old) {
        const keys = toSortedJson(keysOf(one, schema));
        if (!byKeys.has(keys)) byKeys.set(keys, one);
      }
      items = byKeys;
      this.#items.set(old, items);
    }
    return items.get(toSortedJson(keysOf(item, schema)));
  }

  /** True when the value at the path is what it was there. */
  isUnchanged(
    value: unknown,
    old: unknown,
    schema: CustomSchema | undefined,
    steps: readonly string[],
  ): boolean {
    if (old === undefined) return false;
    if (steps.length === 0 || this.isSame(value, old)) return value !== undefined && this.isSame(value, old);
    const [step = "", ...rest] = steps;
    if (Array.isArray(value)) {
      if (!Array.isArray(old) || !/^\d+$/.test(step)) return false;
      const item = value[Number(step)] as unknown;
      return this.isUnchanged(item, this.itemOf(item, old, schema), schema?.items, rest);
    }
    if (typeof value !== "object" || value === null || typeof old !== "object" || old === null) return false;
    const key = longestKey(value, steps);
    if (key === undefined) return false;
    const { properties, additionalProperties } = schema ?? {};
    const member =
      properties?.[key] ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
    return this.isUnchanged(
      (value as Record<string, unknown>)[key],
      (old as Record<string, unknown>)[key],
      member,
      steps.slice(key.split(".").length),
    );
  }
}

/** Keys of maps may have dots in them. */
function longestKey(value: object, steps: readonly string[]): string | undefined {
  for (let count = Math.min(steps.length, dotsMax); count > 0; count--) {
    const key = steps.slice(0, count).join(".");
    if (Object.hasOwn(value, key)) return key;
  }
  return undefined;
}
