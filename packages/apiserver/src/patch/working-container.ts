/**
 * A JSON document that many operations change, one after the other: what an operation changes is opened for changes
 * once, and everything else stays the value that it was. No operation costs time in proportion to the document.
 */
import { depthMax } from "../api/bounded.ts";
import { spendTime } from "../api/work-time.ts";
import { WorkingList } from "./working-list.ts";

/** An object that is open for changes: its members in their order. */
export type WorkingObject = Map<string, unknown>;

/** What has members: open for changes, or not. */
export type Container = WorkingObject | WorkingList | readonly unknown[] | Readonly<Record<string, unknown>>;

/** A container that is open for changes. */
export type WorkingContainer = WorkingObject | WorkingList;

/** True for an open one. */
export function isOpen(value: unknown): value is WorkingContainer {
  return value instanceof Map || value instanceof WorkingList;
}

/** The value, open for changes; what it was made from is not changed by them. */
export function opened(value: Container): WorkingContainer {
  if (isOpen(value)) return value;
  spendTime();
  return Array.isArray(value) ? new WorkingList(value) : new Map(Object.entries(value));
}

/**
 * The value as plain JSON; parts that were never opened are shared with it.
 * @throws RangeError for one that operations have nested too deep
 */
export function plain(value: unknown, depth = 0): unknown {
  if (!isOpen(value)) return value;
  spendTime(1 + (value instanceof Map ? value.size : value.length));
  if (depth > depthMax) throw new RangeError(`it is nested more than ${depthMax} levels deep`);
  if (value instanceof WorkingList) return value.toArray().map((item) => plain(item, depth + 1));
  return Object.fromEntries(Array.from(value, ([key, member]) => [key, plain(member, depth + 1)]));
}

/** How many members objects have that are not open: counted once each, however often they are looked at. */
export class MemberCounts {
  readonly #known = new WeakMap<object, number>();

  of(value: Readonly<Record<string, unknown>>): number {
    let count = this.#known.get(value);
    if (count === undefined) {
      count = Object.keys(value).length;
      spendTime(count);
      this.#known.set(value, count);
    }
    return count;
  }
}

/** True when a part of the document is the JSON value `other`. Costs no more than `other` is long. */
export function sameValue(value: unknown, other: unknown, counts: MemberCounts): boolean {
  spendTime();
  if (typeof other !== "object" || other === null) return value === other;
  if (typeof value !== "object" || value === null) return false;
  const isList = value instanceof WorkingList || Array.isArray(value);
  if (isList !== Array.isArray(other)) return false;
  if (Array.isArray(other)) {
    const list = value as WorkingList | readonly unknown[];
    if (list.length !== other.length) return false;
    const items = list instanceof WorkingList ? list.toArray() : list;
    return other.every((item, i) => sameValue(items[i], item, counts));
  }
  const names = Object.keys(other);
  const there = value as WorkingObject | Readonly<Record<string, unknown>>;
  if ((there instanceof Map ? there.size : counts.of(there)) !== names.length) return false;
  return names.every((name) => {
    const member = memberOf(there, name);
    const wanted = (other as Readonly<Record<string, unknown>>)[name];
    return member.isThere && sameValue(member.value, wanted, counts);
  });
}

/** A member of an object, open or not; names that objects have by nature are no members. */
export function memberOf(
  object: WorkingObject | Readonly<Record<string, unknown>>,
  name: string,
): { readonly isThere: boolean; readonly value: unknown } {
  if (object instanceof Map) return { isThere: object.has(name), value: object.get(name) };
  const isThere = Object.hasOwn(object, name);
  return { isThere, value: isThere ? object[name] : undefined };
}
