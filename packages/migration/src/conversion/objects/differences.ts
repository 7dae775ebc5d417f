/** In which fields one object differs from another, found by comparing them, so that nothing is left out. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { KubeObject, ObjectMeta } from "@longshore/kube";
import type { Difference } from "../conversion-types.ts";

/** Why a field has changed, by its name as in {@link Difference.field}. */
export type Reasons = Readonly<Record<string, string>>;

/** Members of `metadata` that the API server writes. */
const serverFields: ReadonlySet<string> = new Set([
  ...["uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"],
  ...["deletionTimestamp", "deletionGracePeriodSeconds", "generateName"],
]);

/** `metadata` without what the API server writes. */
export function authoredMetadata(metadata: ObjectMeta | undefined): ObjectMeta {
  const kept = Object.entries(metadata ?? {}).filter(([name]) => !serverFields.has(name));
  return Object.fromEntries(kept);
}

/** A map without some of its keys; undefined when nothing is left. */
export function withoutKeys(
  map: Readonly<Record<string, string>> | undefined,
  keys: ReadonlySet<string>,
): Record<string, string> | undefined {
  const kept = Object.entries(map ?? {}).filter(([key]) => !keys.has(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** The object without members that are undefined. */
export function defined<T extends object>(object: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

/**
 * Every field of `metadata` and of the other members in which the two differ, apart from what the API server writes and from
 * `status`. A label, an annotation and a member of `spec` is a field each.
 */
export function differencesOf(before: KubeObject, after: KubeObject, reasons: Reasons): Difference[] {
  const old = fieldsOf(before);
  const now = fieldsOf(after);
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((field) => {
    if (isDeepStrictEqual(old.get(field), now.get(field))) return [];
    const why = reasons[field];
    const difference: Difference = {
      kind: after.kind ?? before.kind ?? "object",
      field,
      ...(old.has(field) ? { before: old.get(field) } : {}),
      ...(now.has(field) ? { after: now.get(field) } : {}),
      ...(why === undefined ? {} : { why }),
    };
    return [difference];
  });
}

const maps: ReadonlySet<string> = new Set(["metadata.labels", "metadata.annotations"]);
const grouped: ReadonlySet<string> = new Set(["metadata", "spec", "parameters", ...maps]);

function fieldsOf(object: KubeObject): Map<string, unknown> {
  const fields = new Map<string, unknown>();
  const add = (path: string, value: unknown) => {
    if (value === undefined || value === null) return;
    if (!grouped.has(path) || typeof value !== "object") {
      fields.set(path, value);
      return;
    }
    for (const [name, inner] of Object.entries(value)) {
      if (path === "metadata" && serverFields.has(name)) continue;
      add(maps.has(path) ? `${path}[${name}]` : `${path}.${name}`, inner);
    }
  };
  for (const [name, value] of Object.entries(object)) {
    if (!["status", "kind", "apiVersion"].includes(name)) add(name, value);
  }
  return fields;
}
