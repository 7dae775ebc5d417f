/**
 * The new state of an object with the parts of the old one that did not change. Most changes touch the status or one
 * annotation; what is kept of them is then that, and the rest, which has just been parsed, is garbage that is still
 * young and costs nothing. It also lets a handler see by `===` that a spec is what it was.
 */
import type { KubeObject, Stored } from "../objects.ts";

type Fields = Readonly<Record<string, unknown>>;

/** An object that equals `after` and shares with `before` what is equal in both. Changes neither. */
export function withSharedParts<T extends KubeObject>(before: Stored<T>, after: Stored<T>): Stored<T> {
  const metadata = shareFields(fieldsOf(before.metadata), fieldsOf(after.metadata));
  const shared = shareFields(fieldsOf(before), { ...fieldsOf(after), metadata });
  return shared as unknown as Stored<T>;
}

function fieldsOf(value: object): Fields {
  return value as unknown as Fields;
}

/** `after`, or a copy of it in which equal fields are those of `before`. */
function shareFields(before: Fields, after: Fields): Fields {
  const shared: Record<string, unknown> = {};
  for (const name in after) {
    const value = after[name];
    const old = before[name];
    shared[name] = typeof value === "object" && isEqual(old, value) ? old : value;
  }
  return shared;
}

/** Whether two JSON values are equal. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!isEqual(a[i], b[i])) return false;
    return true;
  }
  let fields = 0;
  for (const name in a) {
    if (!Object.hasOwn(b, name) || !isEqual((a as Fields)[name], (b as Fields)[name])) return false;
    fields++;
  }
  for (const _ in b) fields--;
  return fields === 0;
}
