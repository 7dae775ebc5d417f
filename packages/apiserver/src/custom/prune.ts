/**
 * Drops members that a structural schema does not have (apiextensions-apiserver schema/pruning). The metadata of a
 * resource, its apiVersion and its kind are always kept.
 */
import type { CustomSchema } from "../api/custom-schema.ts";
import { spendTime } from "../api/work-time.ts";

type Json = Readonly<Record<string, unknown>>;

const metaMembers: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** The value without the members that its schema does not have; itself when there are none. Pure and idempotent. */
export function prune<T>(value: T, schema: CustomSchema | undefined): T {
  return pruneValue(value, { ...schema, "x-kubernetes-embedded-resource": true }, "", () => {}) as T;
}

/** Paths of the members that {@link prune} drops, `spec.size`; at most `most` of them. */
export function prunedPaths(value: unknown, schema: CustomSchema | undefined, most = 100): readonly string[] {
  const paths: string[] = [];
  pruneValue(value, { ...schema, "x-kubernetes-embedded-resource": true }, "", (path) => {
    if (paths.length < most) paths.push(path);
  });
  return paths;
}

/** @param schema undefined: nothing is known, and all members of objects go */
function pruneValue(
  value: unknown,
  schema: CustomSchema | undefined,
  at: string,
  drop: (path: string) => void,
): unknown {
  if (typeof value !== "object" || value === null) return value;
  const keepsUnknown = schema?.["x-kubernetes-preserve-unknown-fields"] === true;
  if (Array.isArray(value)) {
    // Within what is preserved, items are looked at only as far as their own schema says something.
    const items = keepsUnknown ? preserving(schema?.items) : schema?.items;
    return mapList(value, (item, i) => pruneValue(item, items, `${at}[${i}]`, drop));
  }
  const isResource = schema?.["x-kubernetes-embedded-resource"] === true;
  return mapObject(value as Json, (key, member) => {
    if (isResource && metaMembers.has(key)) return member;
    const path = at === "" ? key : `${at}.${key}`;
    const known = own(schema?.properties, key);
    if (known !== undefined) return pruneValue(member, known, path, drop);
    const additional = schema?.additionalProperties;
    if (additional !== undefined && additional !== false) {
      return pruneValue(member, additional === true ? undefined : additional, path, drop);
    }
    if (keepsUnknown) return member;
    drop(path);
    return undefined;
  });
}

function preserving(items: CustomSchema | undefined): CustomSchema {
  return { ...items, "x-kubernetes-preserve-unknown-fields": true };
}

/** The member of that name that the object has itself. */
export function own<T>(of: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return of !== undefined && Object.hasOwn(of, key) ? of[key] : undefined;
}

/** The list with each item changed; the same list when nothing was. */
export function mapList(
  list: readonly unknown[],
  change: (item: unknown, i: number) => unknown,
): readonly unknown[] {
  let result: unknown[] | undefined;
  for (const [i, item] of list.entries()) {
    spendTime();
    const next = change(item, i);
    if (next !== item) {
      result ??= [...list];
      result[i] = next;
    }
  }
  return result ?? list;
}

/** Maps each member with `change`; undefined drops it. Returns the same object when nothing changed. */
export function mapObject(object: Json, change: (key: string, member: unknown) => unknown): Json {
  let result: Record<string, unknown> | undefined;
  for (const [key, member] of Object.entries(object)) {
    spendTime();
    const next = change(key, member);
    if (next === member) continue;
    result ??= { ...object };
    if (next === undefined) delete result[key];
    else result[key] = next;
  }
  return result ?? object;
}
