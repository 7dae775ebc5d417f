/**
 * The fields of a new object, found by its shape: objects that differ in nothing but their values have the same
 * fields, and most objects of a kind are alike. One walk that writes the shape down is cheaper than making the set.
 */
import type { KubeObject } from "@longshore/kube";
import { type FieldType, untyped } from "../api/field-type.ts";
import { compareObjects } from "./compare-objects.ts";
import { type FieldSet, recursiveDifference, union } from "./field-set.ts";
import type { FieldView } from "./field-view.ts";
import { itemElement, NoPath } from "./path-element.ts";
import { deduced, isWhole, type Json } from "./type-steps.ts";

const sets = new WeakMap<FieldView, Map<string, FieldSet>>();

/** How many shapes of a kind are kept, and how long their texts may be. */
const shapesMax = 500;
const shapeLengthMax = 8192;

const nothing: KubeObject = Object.freeze({});

/** The fields that the creator of the object manages: all that the view does not ignore. */
export function createdSet(view: FieldView, object: KubeObject): FieldSet {
  const shape = shapeOf(view.type, object);
  if (shape.length > shapeLengthMax) return makeSet(view, object);
  const ofView = sets.get(view) ?? new Map<string, FieldSet>();
  const known = ofView.get(shape);
  if (known !== undefined) return known;
  const set = makeSet(view, object);
  if (ofView.size >= shapesMax) ofView.clear();
  sets.set(view, ofView.set(shape, set));
  return set;
}

function makeSet(view: FieldView, object: KubeObject): FieldSet {
  const { added, modified } = compareObjects(view.type, nothing, object);
  const set = union(added, modified);
  return view.ignored === undefined ? set : recursiveDifference(set, view.ignored);
}

/**
 * A text that is the same for objects with the same fields. Names go with their lengths: they may hold anything. One
 * that has become too long to be kept is not gone on with.
 */
function shapeOf(given: FieldType, value: unknown): string {
  // A scalar that is empty may be the same as one that is not there.
  if (typeof value !== "object") return value === "" || value === 0 || value === false ? "0" : "1";
  if (value === null) return "n";
  const type = given === untyped ? deduced(given, value) : (given as Exclude<FieldType, { form: "untyped" }>);
  if (isWhole(type)) return "w";
  if (type.form === "list") {
    if (!Array.isArray(value)) return "w";
    let text = "[";
    for (let i = 0; i < value.length && text.length <= shapeLengthMax; i++) {
      const element = elementOf(type, value[i], i);
      text += `${element.length}:${element}${shapeOf(type.of, value[i])}`;
    }
    return `${text}]`;
  }
  let text = "{";
  const isStruct = type.form === "struct";
  for (const name in value) {
    const member = (value as Json)[name];
    if (text.length > shapeLengthMax) return text;
    if (member === undefined) continue;
    const memberType = isStruct ? (type.field(name) ?? untyped) : type.form === "map" ? type.of : untyped;
    text += `${name.length}:${name}${shapeOf(memberType, member)}`;
  }
  return `${text}}`;
}

function elementOf(type: Extract<FieldType, { form: "list" }>, item: unknown, i: number): string {
  try {
    return itemElement(type, item, i);
  } catch (error) {
    if (error instanceof NoPath) return "";
    throw error;
  }
}
