/**
 * Copy on write for API objects: every function returns a new outer object in which the parts that
 * did not change are the very objects of the input.
 */

import type { DraftMap, InTreeSourceName, PersistentVolume, StringMap } from "./types.ts";

type Members = { [member: string]: unknown };

/** What else, besides its source, a translation changes in a PersistentVolume. `undefined` leaves it. */
export interface PersistentVolumeChanges {
  readonly metadata?: PersistentVolume["metadata"];
  readonly nodeAffinity?: NonNullable<PersistentVolume["spec"]>["nodeAffinity"];
  readonly accessModes?: readonly string[] | null | undefined;
}

/** `pv` with the member `from` of its spec replaced by `to`, in the same place. An existing member `to` is replaced. */
export function replaceSource(
  pv: PersistentVolume,
  from: InTreeSourceName | "csi",
  to: InTreeSourceName | "csi",
  source: object,
  changes: PersistentVolumeChanges,
): PersistentVolume {
  const before = pv.spec as Members;
  const spec: Members = {};
  for (const member in before) {
    if (member === from) spec[to] = source;
    else if (member !== to) set(spec, member, before[member]);
  }
  const { metadata, nodeAffinity, accessModes } = changes;
  if (nodeAffinity !== undefined && nodeAffinity !== before.nodeAffinity) spec.nodeAffinity = nodeAffinity;
  if (accessModes !== undefined && accessModes !== before.accessModes) spec.accessModes = accessModes;
  if (metadata === undefined || metadata === pv.metadata) return { ...pv, spec };
  return { ...pv, metadata, spec };
}

/** Assigns an own member, also one whose name an assignment would take for the prototype. */
export function set<T>(target: { [member: string]: T }, member: string, value: T): void {
  if (member === "__proto__") {
    Object.defineProperty(target, member, { value, enumerable: true, configurable: true, writable: true });
  } else target[member] = value;
}

/** The entry `key` of a map of the API, never one of its prototype. */
export function entry(map: StringMap | null | undefined, key: string): string | undefined {
  return map != null && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** `metadata` with one label or annotation set; a map that is missing is made. */
export function withEntry(
  metadata: PersistentVolume["metadata"],
  map: "labels" | "annotations",
  key: string,
  value: string,
): NonNullable<PersistentVolume["metadata"]> {
  return { ...metadata, [map]: { ...metadata?.[map], [key]: value } };
}

/** `after`, or `before` itself when both hold the same entries. */
export function keepIfEqual(before: StringMap | null | undefined, after: DraftMap): StringMap | undefined {
  const keys = Object.keys(after);
  if (before == null) return keys.length === 0 ? undefined : after;
  if (keys.length === Object.keys(before).length && keys.every((key) => entry(before, key) === after[key])) {
    return before;
  }
  return keys.length === 0 ? undefined : after;
}
