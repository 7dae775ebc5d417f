/** What is wrong with an applied configuration: members and types that are not the kind's, items that are there twice. */

import type { FieldType, ListType } from "../api/field-type.ts";
import { isNumber, toJson } from "../api/json.ts";
import { itemElement, memberElement, NoPath, type PathElement, shownElement } from "./path-element.ts";
import { deduced, isObject, type Json } from "./type-steps.ts";

/** Maximum number of problems reported. */
const problemsMax = 100;

/** One text for each problem, with the path that it is at; empty when the value is of the type. */
export function appliedProblems(type: FieldType, value: unknown): readonly string[] {
  const found: string[] = [];
  lookAt(type, value, "", found);
  return found;
}

function lookAt(given: FieldType, value: unknown, at: string, found: string[]): void {
  if (value === null || value === undefined || given.form === "untyped" || found.length >= problemsMax)
    return;
  const report = (what: string) => found.push(`${at}: ${what}`);
  const type = deduced(given, value);
  switch (type.form) {
    case "scalar": {
      if (!accepts(type.accepts, value)) report(`expected ${wanted[type.accepts]}, got ${shownValue(value)}`);
      return;
    }
    case "list":
      if (!Array.isArray(value)) report(`expected list, got ${shownValue(value)}`);
      else lookAtItems(type, value, at, found);
      return;
    default:
      if (!isObject(value)) report(`expected map, got ${shownValue(value)}`);
      else lookAtMembers(type, value, at, found);
  }
}

function lookAtMembers(
  type: Exclude<FieldType, { form: "list" }>,
  value: Json,
  at: string,
  found: string[],
): void {
  for (const [name, member] of Object.entries(value)) {
    const path = at + shownElement(memberElement(name));
    if (type.form === "struct") {
      const field = type.field(name);
      if (field === undefined) found.push(`${path}: field not declared in schema`);
      else lookAt(field, member, path, found);
    } else if (type.form === "map") lookAt(type.of, member, path, found);
  }
}

function lookAtItems(type: ListType, items: readonly unknown[], at: string, found: string[]): void {
  const seen = new Set<PathElement>();
  for (const [i, item] of items.entries()) {
    let element: PathElement;
    try {
      element = itemElement(type, item, i);
    } catch (error) {
      if (!(error instanceof NoPath)) throw error;
      found.push(`${at}: element ${i}: ${error.message}`);
      return;
    }
    if (seen.has(element)) found.push(`${at}: duplicate entries for key ${shownElement(element)}`);
    seen.add(element);
    lookAt(type.of, item, at + shownElement(element), found);
  }
}

const wanted = {
  string: "string",
  integer: "numeric (int or float)",
  number: "numeric (int or float)",
  boolean: "boolean",
  any: "scalar",
  anything: "anything",
} as const;

function accepts(what: keyof typeof wanted, value: unknown): boolean {
  switch (what) {
    case "anything":
      return true;
    case "any":
      return typeof value !== "object";
    case "integer":
    case "number":
      return isNumber(value);
    default:
      return typeof value === what;
  }
}

const shownValue = (value: unknown) =>
  typeof value === "object" ? (Array.isArray(value) ? "a list" : "a map") : toJson(value);
