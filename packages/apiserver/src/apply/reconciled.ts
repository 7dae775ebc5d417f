/**
 * Brings what a manager manages into the form of the type as it is now: what has become atomic is managed as a whole,
 * and who manages the whole of something that is not atomic manages what is in it (structured-merge-diff,
 * typed/reconcile_schema.go). The latter also befalls those of whose map or list nothing but itself is left.
 */
import type { FieldType } from "../api/field-type.ts";
import { spendTime } from "../api/work-time.ts";
import { type FieldSet, leaf, nodeOf } from "./field-set.ts";
import { memberName, type PathElement } from "./path-element.ts";
import { childType, fieldOf } from "./type-steps.ts";

/** @param liveFields the fields of the live object, made when they are needed */
export function reconciled(set: FieldSet, type: FieldType, liveFields: () => FieldSet): FieldSet {
  if (isSettled(set, type)) return set;
  return withChildren(set, type, liveFields());
}

/** What is known of sets: those that are in the form of the type. */
const settled = new WeakMap<FieldSet, FieldType>();

function isSettled(set: FieldSet, type: FieldType): boolean {
  if (settled.get(set) === type) return true;
  for (const [element, child] of set.children) {
    spendTime();
    if (!isKnown(type, element)) continue;
    const below = childType(type, element);
    if (changeOf(child, below) !== "none" || !isSettled(child, below)) return false;
  }
  if (set.children.size > 0) settled.set(set, type);
  return true;
}

type Change = "none" | "toWhole" | "toParts";

function changeOf(set: FieldSet, type: FieldType): Change {
  if (type.form === "scalar" || type.form === "untyped") return "none";
  const isWholeHere = set.member && set.children.size === 0;
  const isAtomic = type.form === "list" ? type.listType === "atomic" : type.atomic;
  if (isAtomic) return !isWholeHere && (set.children.size > 0 || type.form === "list") ? "toWhole" : "none";
  if (type.form === "map" && type.of.form === "untyped") return "none";
  return isWholeHere ? "toParts" : "none";
}

function withChildren(set: FieldSet, type: FieldType, live: FieldSet | undefined): FieldSet {
  let children: Map<PathElement, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    spendTime();
    if (!isKnown(type, element)) continue;
    const next = reconciledAt(child, childType(type, element), live?.children.get(element));
    if (next === child) continue;
    children ??= new Map(set.children);
    children.set(element, next);
  }
  return children === undefined ? set : nodeOf(set.member, children);
}

function reconciledAt(set: FieldSet, type: FieldType, live: FieldSet | undefined): FieldSet {
  switch (changeOf(set, type)) {
    case "toWhole":
      return leaf;
    case "toParts":
      return live === undefined || live.children.size === 0 ? set : nodeOf(true, live.children);
    default:
      return set.children.size === 0 ? set : withChildren(set, type, live);
  }
}

/** Members that the type does not have are left as they are. */
function isKnown(type: FieldType, element: PathElement): boolean {
  const name = memberName(element);
  if (name === undefined || type.form !== "struct") return type.form !== "untyped";
  return fieldOf(type, name) !== undefined;
}
