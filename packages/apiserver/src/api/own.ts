/**
 * Takes values into the server. Every value that the server stores or returns is deeply frozen and
 * shared. Input from a caller is copied once, except for the parts that came from the server
 * before: those are kept by reference, so an update copies what changed and nothing else.
 */
import { setMember } from "./set-member.ts";
import { spendTime } from "./work-time.ts";

/**
 * The value as the server keeps it: deeply frozen, without members that are undefined or null
 * (the API treats them as absent).
 */
export function own<T>(value: T): T {
  if (typeof value !== "object" || value === null || isOwn(value)) return value;
  spendTime();
  const copy: object = Array.isArray(value) ? value.map(own) : ownObject(value as Record<string, unknown>);
  return Object.freeze(copy) as T;
}

/**
 * True when a value is as {@link own} leaves it. Looked at, not remembered: a set of all that is owned would have
 * millions of members, and the collector of garbage would go through them again and again.
 */
function isOwn(value: object): boolean {
  if (!Object.isFrozen(value)) return false;
  spendTime();
  if (Array.isArray(value)) return value.every(isOwnMember) || meansNull.has(value);
  for (const key in value) {
    if (!isOwnMember((value as Record<string, unknown>)[key])) return meansNull.has(value);
  }
  return true;
}

function isOwnMember(member: unknown): boolean {
  return typeof member === "object" ? member !== null && isOwn(member) : member !== undefined;
}

/** Frozen objects and lists with a null in them that is meant: see {@link ownWithNulls}. They are few. */
const meansNull = new WeakSet<object>();

/** As {@link own}, but members that are null stay: in custom resources they may mean something. */
export function ownWithNulls<T>(value: T): T {
  return keepNulls(value).value as T;
}

/** As {@link ownWithNulls}, for values that were just parsed from our own JSON: frozen in place, without a copy. */
export function ownParsed<T>(value: T): T {
  freezeParsed(value);
  return value;
}

/** Freezes to the leaves; true when there is a null in it. */
function freezeParsed(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === null;
  let hasNull = false;
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (typeof member === "object" && freezeParsed(member)) hasNull = true;
  }
  Object.freeze(value);
  if (hasNull) meansNull.add(value);
  return hasNull;
}

/** The value, frozen to its leaves, and whether there is a null in it. */
function keepNulls(value: unknown): { readonly value: unknown; readonly hasNull: boolean } {
  if (typeof value !== "object" || value === null) return { value, hasNull: value === null };
  if (isOwn(value)) return { value, hasNull: meansNull.has(value) };
  spendTime();
  let hasNull = false;
  const kept = (member: unknown): unknown => {
    const inner = keepNulls(member);
    hasNull ||= inner.hasNull;
    return inner.value;
  };
  const copy: object = Array.isArray(value) ? value.map(kept) : {};
  if (!Array.isArray(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (member !== undefined) setMember(copy as Record<string, unknown>, key, kept(member));
    }
  }
  Object.freeze(copy);
  if (hasNull) meansNull.add(copy);
  return { value: copy, hasNull };
}

function ownObject(value: Record<string, unknown>): object {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined || member === null) continue;
    setMember(copy, key, typeof member === "object" ? own(member) : member);
  }
  return copy;
}

/** True when both are the same JSON value; shared parts are not looked into. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  spendTime();
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => sameJson(item, b[i]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}
