/**
 * Which fields a write has added, changed and taken away (structured-merge-diff, typed/compare.go). A field with
 * others in it is itself added, or taken away, only when it was not there at all.
 */
import type { FieldType, ListType } from "../api/field-type.ts";
import { sameJson } from "../api/own.ts";
import { spendTime } from "../api/work-time.ts";
import { emptySet, type FieldSet, leaf, nodeOf } from "./field-set.ts";
import { itemElement, memberElement, NoPath, type PathElement } from "./path-element.ts";
import { deduced, isObject, isWhole, type Json, memberType, memberValue, namesOf } from "./type-steps.ts";

/** The fields that a write has added, changed and removed. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

const noDifference: Comparison = { added: emptySet, modified: emptySet, removed: emptySet };
const modifiedLeaf: Comparison = { ...noDifference, modified: leaf };

/** Compares two objects of one type. Parts that both share are not looked into. */
export function compareObjects(type: FieldType, before: unknown, after: unknown): Comparison {
  return compareAt(type, before, after) ?? noDifference;
}

function compareAt(given: FieldType, before: unknown, after: unknown): Comparison | undefined {
  if (before === after) return undefined;
  spendTime();
  const type = deduced(given, after ?? before);
  if (type.form === "scalar") return sameJson(before, after) ? undefined : modifiedLeaf;
  // Empty ones and null have no parts that could differ: the value as a whole does.
  if (isWhole(type) || (isEmptyValue(before) && isEmptyValue(after))) {
    return sameJson(before, after) ? undefined : modifiedLeaf;
  }
  if (type.form === "list") {
    if (!isList(before) || !isList(after)) return modifiedLeaf;
    return compareItems(type, before ?? [], after ?? []);
  }
  if (!isMap(before) || !isMap(after)) return modifiedLeaf;
  return compareMembers(type, before ?? {}, after ?? {});
}

function isEmptyValue(value: unknown): boolean {
  if (value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== "object") return false;
  for (const _ in value) return false;
  return true;
}

const isList = (value: unknown): value is readonly unknown[] | null => value === null || Array.isArray(value);
const isMap = (value: unknown): value is Json | null => value === null || isObject(value);

/** Collects what the parts of something have become. */
class Differences {
  readonly #added = new Parts();
  readonly #modified = new Parts();
  readonly #removed = new Parts();

  add(element: PathElement, type: FieldType, before: unknown, after: unknown): void {
    if (before === undefined) {
      this.#added.put(element, wholeSet(type, after));
      return;
    }
    if (after === undefined) {
      this.#removed.put(element, wholeSet(type, before));
      return;
    }
    const found = compareAt(type, before, after);
    if (found === undefined) return;
    this.#added.put(element, found.added);
    this.#modified.put(element, found.modified);
    this.#removed.put(element, found.removed);
  }

  found(): Comparison | undefined {
    const found = { added: this.#added.set(), modified: this.#modified.set(), removed: this.#removed.set() };
    const isSame = found.added === emptySet && found.modified === emptySet && found.removed === emptySet;
    return isSame ? undefined : found;
  }
}

/** A set in the making, of which there mostly is nothing. */
class Parts {
  #children: Map<PathElement, FieldSet> | undefined;

  put(element: PathElement, set: FieldSet): void {
    if (set === emptySet) return;
    this.#children ??= new Map();
    this.#children.set(element, set);
  }

  set(): FieldSet {
    return this.#children === undefined ? emptySet : nodeOf(false, this.#children);
  }
}

function compareMembers(type: FieldType, before: Json, after: Json): Comparison | undefined {
  const differences = new Differences();
  const look = (name: string, left: unknown, right: unknown) => {
    spendTime();
    if (left === right) return;
    differences.add(memberElement(name), memberType(type, name), left, right);
  };
  const names = namesOf(type, after);
  for (const name of names) look(name, memberValue(type, before, name), memberValue(type, after, name));
  for (const name of Object.keys(before)) {
    if (before[name] !== undefined && memberValue(type, after, name) === undefined) {
      look(name, before[name], undefined);
    }
  }
  return differences.found();
}

function compareItems(type: ListType, before: readonly unknown[], after: readonly unknown[]) {
  const differences = new Differences();
  const left = itemsOf(type, before);
  const right = itemsOf(type, after);
  for (const [element, item] of right) differences.add(element, type.of, left.get(element), item);
  for (const [element, item] of left) {
    if (!right.has(element)) differences.add(element, type.of, item, undefined);
  }
  return differences.found();
}

/** The items by their path elements; of two items with the same path element, the first. */
export function itemsOf(type: ListType, list: readonly unknown[]): Map<PathElement, unknown> {
  const items = new Map<PathElement, unknown>();
  for (const [i, item] of list.entries()) {
    spendTime();
    try {
      const element = itemElement(type, item, i);
      if (!items.has(element)) items.set(element, item);
    } catch (error) {
      // An item without a path has no manager.
      if (!(error instanceof NoPath)) throw error;
    }
  }
  return items;
}

/** Every path of a value that is there on one side only, the value's own included. */
function wholeSet(given: FieldType, value: unknown): FieldSet {
  spendTime();
  const type = deduced(given, value);
  if (isWhole(type) || value === null || typeof value !== "object") return leaf;
  let children: Map<PathElement, FieldSet> | undefined;
  if (type.form === "list") {
    if (!Array.isArray(value)) return leaf;
    for (const [element, item] of itemsOf(type, value)) {
      children ??= new Map();
      children.set(element, wholeSet(type.of, item));
    }
  } else {
    const object = value as Json;
    for (const name of namesOf(type, object)) {
      const member = memberValue(type, object, name);
      if (member === undefined) continue;
      children ??= new Map();
      children.set(memberElement(name), wholeSet(memberType(type, name), member));
    }
  }
  return children === undefined ? leaf : nodeOf(true, children);
}
