/**
 * The parts of paths to fields, as the text that FieldsV1 has for them: `f:name` for a member, `k:{…}` for an item
 * found by its keys, `v:…` for an item that is a value, `i:0` for one found by its place. The text is canonical, so
 * that two parts are the same when their texts are (sigs.k8s.io/structured-merge-diff, fieldpath/serialize-pe.go).
 */

import type { ListType } from "../api/field-type.ts";
import { isNumber, parseJson, toJson } from "../api/json.ts";

/** The text of a part; see the file's header. */
export type PathElement = string;

/** The part for a member, by its name. */
export const memberElement = (name: string): PathElement => `f:${name}`;
/** The part for an item that is a value. */
export const valueElement = (value: unknown): PathElement => `v:${toJson(value)}`;
/** The part for an item found by its place, from 0. */
export const indexElement = (index: number): PathElement => `i:${index}`;

/** The name of a member; undefined for items. */
export function memberName(element: PathElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/** An item that no path leads to: it has no keys, or is not what its list holds. */
export class NoPath extends Error {
  override readonly name = "NoPath";
}

const isScalar = (value: unknown) =>
  typeof value === "string" || isNumber(value) || typeof value === "boolean" || value === null;

/** The part that leads to an item of the list. @throws NoPath */
export function itemElement(list: ListType, item: unknown, index: number): PathElement {
  if (list.listType === "atomic") return indexElement(index);
  if (list.listType === "set") {
    if (item === null || item === undefined)
      throw new NoPath("associative list without keys has an element that's an explicit null");
    if (!isScalar(item)) throw new NoPath("associative list without keys has an element that's a map type");
    return valueElement(item);
  }
  if (typeof item !== "object" || item === null) {
    throw new NoPath(
      item === null || item === undefined
        ? "associative list with keys may not have a null element"
        : "associative list with keys may not have non-map elements",
    );
  }
  return keyElement(list, item as Readonly<Record<string, unknown>>);
}

function keyElement({ keys, keyDefaults }: ListType, item: Readonly<Record<string, unknown>>): PathElement {
  const sorted = keys.length > 1 ? sortedKeys(keys) : keys;
  let text = "";
  for (const key of sorted) {
    const value = item[key] ?? keyDefaults[key];
    // A key without a value is no part of the path, but not all may be without.
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${toJson(value)}`;
  }
  if (text === "") {
    const names = keys.map((key) => JSON.stringify(key)).join(", ");
    throw new NoPath(
      `associative list with keys has an element that omits key field ${names} (and doesn't have default value)`,
    );
  }
  return `k:{${text}}`;
}

const sortedByKeys = new WeakMap<readonly string[], readonly string[]>();

function sortedKeys(keys: readonly string[]): readonly string[] {
  const known = sortedByKeys.get(keys);
  if (known !== undefined) return known;
  const sorted = [...keys].sort();
  sortedByKeys.set(keys, sorted);
  return sorted;
}

/** The canonical text of a path element from a client; undefined for one that cannot be read. */
export function readElement(text: string): PathElement | undefined {
  const rest = text.slice(2);
  switch (text.slice(0, 2)) {
    case "f:":
      return text;
    case "i:":
      return /^-?\d+$/.test(rest) ? `i:${Number(rest)}` : undefined;
    case "v:": {
      const value = parsed(rest);
      return value === undefined ? undefined : valueElement(value);
    }
    case "k:": {
      const value = parsed(rest);
      if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
      const fields = value as Readonly<Record<string, unknown>>;
      const names = Object.keys(fields).sort();
      return `k:{${names.map((name) => `${JSON.stringify(name)}:${toJson(fields[name])}`).join(",")}}`;
    }
    default:
      return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** As paths show it in messages: `.name`, `[key="value"]`, `[="value"]`, `[0]`. */
export function shownElement(element: PathElement): string {
  const rest = element.slice(2);
  switch (element.slice(0, 2)) {
    case "f:":
      return `.${rest}`;
    case "i:":
      return `[${rest}]`;
    case "v:":
      return `[=${rest}]`;
    default: {
      const fields = Object.entries(parseJson(rest) as Record<string, unknown>);
      return `[${fields.map(([name, value]) => `${name}=${toJson(value)}`).join(",")}]`;
    }
  }
}

const classes = "fkvi";

/** The order of parts: members, then keys, values and places; each by what they hold. */
export function compareElements(a: PathElement, b: PathElement): number {
  const byClass = classes.indexOf(a.charAt(0)) - classes.indexOf(b.charAt(0));
  if (byClass !== 0) return byClass;
  switch (a.charAt(0)) {
    case "f":
      return compareTexts(a, b);
    case "i":
      return Number(a.slice(2)) - Number(b.slice(2));
    case "v":
      return compareValues(parseJson(a.slice(2)), parseJson(b.slice(2)));
    default:
      return compareFields(
        Object.entries(parseJson(a.slice(2)) as Record<string, unknown>),
        Object.entries(parseJson(b.slice(2)) as Record<string, unknown>),
      );
  }
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

type Fields = readonly (readonly [string, unknown])[];

function compareFields(a: Fields, b: Fields): number {
  for (let i = 0; ; i++) {
    const [left, right] = [a[i], b[i]];
    if (left === undefined || right === undefined) return a.length - b.length;
    const order = compareTexts(left[0], right[0]) || compareValues(left[1], right[1]);
    if (order !== 0) return order;
  }
}

/** Numbers, then texts, then truth values. */
const rankOf = (value: unknown) => (isNumber(value) ? 0 : typeof value === "string" ? 1 : 2);

function compareValues(a: unknown, b: unknown): number {
  const byKind = rankOf(a) - rankOf(b);
  if (byKind !== 0) return byKind;
  if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : 0;
  return compareTexts(String(a), String(b));
}
