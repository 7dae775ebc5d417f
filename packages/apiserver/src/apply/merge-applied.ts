/**
 * Merges an applied configuration into the live object, and takes fields out of an object
 * (structured-merge-diff, typed/merge.go and typed/remove.go).
 */
import type { FieldType, ListType } from "../api/field-type.ts";
import { ownMember, setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import { itemsOf } from "./compare-objects.ts";
import type { FieldSet } from "./field-set.ts";
import { itemElement, memberElement, NoPath, type PathElement } from "./path-element.ts";
import { deduced, isObject, isWhole, type Json, memberType } from "./type-steps.ts";

/** Who decides where the items of a merged list stand. */
export interface MergeOptions {
  /** What is applied decides; before 1.26 items stayed where they were, and new ones came last. */
  readonly appliedOrder: boolean;
}

/** The live value with what is applied put over it; parts that are not named are shared with `live`. */
export function mergeApplied(
  given: FieldType,
  live: unknown,
  applied: unknown,
  options: MergeOptions,
): unknown {
  spendTime();
  if (applied === undefined) return live;
  if (live === undefined || live === null) return applied;
  const type = deduced(given, applied ?? live);
  if (isWhole(type)) return applied;
  if (type.form === "list") {
    if (!Array.isArray(live)) return applied;
    if (applied === null || (applied as readonly unknown[]).length === 0) return live;
    return mergeItems(type, live, applied as readonly unknown[], options);
  }
  if (!isObject(live)) return applied;
  if (applied === null) return Object.keys(live).length === 0 ? null : live;
  const result: Record<string, unknown> = { ...live };
  for (const [name, member] of Object.entries(applied as Json)) {
    setMember(result, name, mergeApplied(memberType(type, name), ownMember(live, name), member, options));
  }
  return result;
}

function mergeItems(
  type: ListType,
  live: readonly unknown[],
  applied: readonly unknown[],
  { appliedOrder, ...rest }: MergeOptions,
): readonly unknown[] {
  const there = itemsOf(type, live);
  const given = itemsOf(type, applied);
  const order = appliedOrder
    ? inAppliedOrder([...there.keys()], [...given.keys()])
    : [...there.keys(), ...[...given.keys()].filter((element) => !there.has(element))];
  return order.map((element) =>
    mergeApplied(type.of, there.get(element), given.get(element), { appliedOrder, ...rest }),
  );
}

/**
 * The order of what is applied, with the others of the live list in between: each before the first of those that it
 * stood before and that are applied at the same place or later.
 */
function inAppliedOrder(live: readonly PathElement[], applied: readonly PathElement[]): PathElement[] {
  const isApplied = new Set(applied);
  const isLive = new Set(live);
  const shared = applied.filter((element) => isLive.has(element));
  let nextShared = 0;
  const result: PathElement[] = [];
  const placed = new Set<PathElement>();
  let [l, r] = [0, 0];
  const place = (element: PathElement) => {
    result.push(element);
    placed.add(element);
  };
  while (l < live.length || r < applied.length) {
    spendTime();
    const left = live[l];
    const right = applied[r];
    while (nextShared < shared.length && placed.has(shared[nextShared] as PathElement)) nextShared++;
    const next = shared[nextShared];
    if (left !== undefined && left === right) {
      place(left);
      l++;
      r++;
    } else if (
      left !== undefined &&
      right !== undefined &&
      isApplied.has(left) &&
      next !== undefined &&
      next !== left
    ) {
      // It comes later, or came before: this is not its place.
      l++;
    } else if (left !== undefined && !isApplied.has(left)) {
      place(left);
      l++;
    } else {
      if (left !== undefined && placed.has(left)) l++;
      if (right !== undefined) {
        place(right);
        r++;
      } else if (left !== undefined && !placed.has(left)) l++;
    }
  }
  return result;
}

/** The value without the fields of the set; undefined when nothing is left. */
export function removeFields(given: FieldType, value: unknown, gone: FieldSet): unknown {
  if (gone.children.size === 0) return value;
  const type = deduced(given, value);
  if (type.form === "scalar" || value === null || typeof value !== "object") return value;
  if (type.form === "list") {
    if (!Array.isArray(value)) return value;
    const left = value.flatMap((item: unknown, i) => {
      spendTime();
      const below = belowOf(type, item, i, gone);
      if (below === undefined) return [item];
      return below.member ? [] : [removeFields(type.of, item, below)];
    });
    return left.length === 0 ? undefined : left;
  }
  const result: Record<string, unknown> = {};
  let count = 0;
  for (const [name, member] of Object.entries(value as Json)) {
    spendTime();
    const below = gone.children.get(memberElement(name));
    if (below?.member === true) continue;
    const left = below === undefined ? member : removeFields(memberType(type, name), member, below);
    count++;
    // An object of which nothing is left is still there, as null.
    setMember(result, name, left ?? null);
  }
  return count === 0 ? undefined : result;
}

function belowOf(type: ListType, item: unknown, index: number, gone: FieldSet): FieldSet | undefined {
  try {
    return gone.children.get(itemElement(type, item, index));
  } catch (error) {
    if (error instanceof NoPath) return undefined;
    throw error;
  }
}
