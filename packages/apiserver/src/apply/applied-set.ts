/** The fields that an applied configuration names (structured-merge-diff, typed/tofieldset.go). */
import type { FieldType } from "../api/field-type.ts";
import { spendTime } from "../api/work-time.ts";
import { itemsOf } from "./compare-objects.ts";
import { type FieldSet, leaf, nodeOf } from "./field-set.ts";
import { memberElement, type PathElement } from "./path-element.ts";
import { deduced, fieldOf, isObject, isWhole, memberType, memberValue, namesOf } from "./type-steps.ts";

/** Which members of a value count as fields. */
export interface AppliedSetOptions {
  /** Members that are null or an empty map are fields; as they are since 1.21. */
  readonly emptyMembers: boolean;
  /** The value is an object of the API, which has members that its JSON leaves out. */
  readonly isLive?: boolean;
}

/**
 * The set of the leaves of the value, the items of its lists, and the members of its maps: a struct is no field, what
 * it holds is.
 */
export function appliedSet(type: FieldType, value: unknown, options: AppliedSetOptions): FieldSet {
  const children = fieldsIn(type, value, options);
  return children === "whole" ? leaf : nodeOf(false, children);
}

function fieldsIn(
  given: FieldType,
  value: unknown,
  options: AppliedSetOptions,
): Map<PathElement, FieldSet> | "whole" {
  spendTime();
  const type = deduced(given, value);
  if (isWhole(type)) return "whole";
  const children = new Map<PathElement, FieldSet>();
  if (type.form === "list") {
    if (Array.isArray(value)) {
      for (const [element, item] of itemsOf(type, value)) {
        const below = fieldsIn(type.of, item, options);
        children.set(element, below === "whole" ? leaf : nodeOf(true, below));
      }
    }
    return children;
  }
  if (!isObject(value)) return children;
  for (const name of options.isLive === true ? namesOf(type, value) : Object.keys(value)) {
    const member = options.isLive === true ? memberValue(type, value, name) : value[name];
    if (member === undefined) continue;
    const below = fieldsIn(memberType(type, name), member, options);
    if (below === "whole") {
      children.set(memberElement(name), leaf);
      continue;
    }
    const isEmpty = member === null || (isObject(member) && Object.keys(member).length === 0);
    const isField = fieldOf(type, name) === undefined || (isEmpty && options.emptyMembers);
    const set = nodeOf(isField, below);
    if (set.member || set.children.size > 0) children.set(memberElement(name), set);
  }
  return children;
}
