/**
 * What a write does to the managers of an object's fields, and what an apply makes of the object. Pure: objects and
 * managers go in and come out (structured-merge-diff, merge/update.go; apiserver, fieldmanager).
 *
 * Invariants
 *  - Fields that only the server sets have no manager: names, times, versions ({@link neverManaged}).
 *  - A write that changes a field makes the writer its manager, and removes managers that had another value there; an
 *    apply does this only with `force`.
 *  - A manager that an operation does not concern keeps its entry, time included.
 */
import type { KubeObject } from "@longshore/kube";
import { apiError } from "../api/errors.ts";
import { appliedSet } from "./applied-set.ts";
import { type Comparison, compareObjects } from "./compare-objects.ts";
import { createdSet } from "./created-set.ts";
import {
  difference,
  emptySet,
  type FieldSet,
  intersection,
  isEmpty,
  pathCount,
  recursiveDifference,
  sameSet,
  setOf,
  union,
  unionOf,
  withNamedFields,
} from "./field-set.ts";
import type { FieldView } from "./field-view.ts";
import {
  capUpdaters,
  identityText,
  type Manager,
  type ManagerIdentity,
  type Managers,
  noManagers,
  withoutIdle,
  withSet,
} from "./managers.ts";
import { mergeApplied, removeFields } from "./merge-applied.ts";
import { reconciled } from "./reconciled.ts";

/** What only the server sets. */
export const neverManaged: FieldSet = setOf(
  ["f:apiVersion"],
  ["f:kind"],
  ["f:metadata"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["f:metadata", `f:${name}`]),
);

/** A manager whose fields another write would change. */
export interface FieldConflict {
  readonly manager: Manager;
  readonly set: FieldSet;
}

/** What an update leaves of the managers, and who had what it changed. */
interface Taken {
  readonly managers: Managers;
  readonly comparison: Comparison;
  readonly conflicts: readonly FieldConflict[];
}

/** Takes from all others what has changed between the two objects. */
function takeFromOthers(
  view: FieldView,
  before: KubeObject,
  after: KubeObject,
  managers: Managers,
  writer: string | undefined,
): Taken {
  const own = withoutIgnored(compareObjects(view.type, before, after), view.ignored);
  if (isSame(own)) return { managers, comparison: own, conflicts: [] };
  const changes = new Map<string, Changes | undefined>([[view.apiVersion, changesOf(own)]]);
  const compareIn = (apiVersion: string) => {
    if (!changes.has(apiVersion)) {
      const [left, right] = [view.convert(before, apiVersion), view.convert(after, apiVersion)];
      const isServed = left !== undefined && right !== undefined;
      changes.set(
        apiVersion,
        isServed
          ? changesOf(withoutIgnored(compareObjects(view.type, left, right), view.ignored))
          : undefined,
      );
    }
    return changes.get(apiVersion);
  };
  const result = new Map(managers);
  const conflicts: FieldConflict[] = [];
  for (const [id, manager] of managers) {
    if (id === writer) continue;
    const change = compareIn(manager.apiVersion);
    if (change === undefined) {
      // That version is no longer served.
      result.delete(id);
      continue;
    }
    const taken = intersection(manager.set, change.set);
    if (!isEmpty(taken)) conflicts.push({ manager, set: taken });
    result.set(id, withSet(manager, difference(difference(manager.set, taken), change.removed)));
  }
  return { managers: withoutIdle(result), comparison: own, conflicts };
}

/** A comparison as the managers of fields see it: what has another value, and what is gone. */
interface Changes {
  readonly set: FieldSet;
  readonly removed: FieldSet;
}

const changesOf = ({ added, modified, removed }: Comparison): Changes => ({
  set: union(modified, added),
  removed,
});

const isSame = ({ added, modified, removed }: Comparison) =>
  isEmpty(added) && isEmpty(modified) && isEmpty(removed);

function withoutIgnored(comparison: Comparison, ignored: FieldSet | undefined): Comparison {
  if (ignored === undefined) return comparison;
  return {
    added: recursiveDifference(comparison.added, ignored),
    modified: recursiveDifference(comparison.modified, ignored),
    removed: recursiveDifference(comparison.removed, ignored),
  };
}

/** Who writes, and when. */
export interface Writer extends ManagerIdentity {
  /** The time of the write, as the API writes times. */
  readonly time: string;
}

/** The creator of an object manages all its fields that can have a manager; objects of one shape share one set. */
export function managersAfterCreate(view: FieldView, object: KubeObject, writer: Writer): Managers {
  const created = createdSet(view, object);
  let set = withoutNever.get(created);
  if (set === undefined) {
    set = difference(created, neverManaged);
    withoutNever.set(created, set);
  }
  return isEmpty(set) ? noManagers : new Map([[identityText(writer), { ...writer, set }]]);
}

const withoutNever = new WeakMap<FieldSet, FieldSet>();

/** The managers after a create, an update or a patch that makes `after` of `before`. */
export function managersAfterUpdate(
  view: FieldView,
  before: KubeObject,
  after: KubeObject,
  managers: Managers,
  writer: Writer,
): Managers {
  const id = identityText(writer);
  const known = reconcile(view, before, managers);
  // What is too large is stored without managed fields.
  if (known === undefined) return noManagers;
  const taken = takeFromOthers(view, before, after, known, undefined);
  const { added, modified, removed } = taken.comparison;
  const set = difference(difference(union(modified, added), removed), neverManaged);
  if (isEmpty(set)) return taken.managers === managers ? managers : capUpdaters(taken.managers);
  const previous = taken.managers.get(id)?.set ?? emptySet;
  const result = new Map(taken.managers);
  result.set(id, { ...writer, set: union(previous, set) });
  return capUpdaters(result);
}

/** Most parts of paths that all managers have together: more do not find room in a stored object. */
const pathsMax = 200_000;

function tooManyFields(managers: number): Error {
  const why = `its ${managers} managers have more than ${pathsMax} fields together: remove entries from metadata.managedFields`;
  return apiError(500, "", `etcdserver: request is too large: ${why}`);
}

/**
 * The managers with their fields in the form of the type as it is now. Who manages all of a map as a whole comes to
 * manage each of its members: thousands of such managers are few bytes and millions of fields. Undefined where they
 * are more than can be stored.
 */
function reconcile(view: FieldView, live: KubeObject, managers: Managers): Managers | undefined {
  let changed: Map<string, Manager> | undefined;
  let paths = 0;
  const liveSets = new Map<string, FieldSet>();
  const liveFields = (apiVersion: string) => {
    let set = liveSets.get(apiVersion);
    if (set === undefined) {
      set = appliedSet(view.type, view.convert(live, apiVersion) ?? {}, { ...view, isLive: true });
      liveSets.set(apiVersion, set);
    }
    return set;
  };
  for (const [id, manager] of managers) {
    const set = reconciled(manager.set, view.type, () => liveFields(manager.apiVersion));
    paths += pathCount(set);
    if (paths > pathsMax) return undefined;
    if (set === manager.set) continue;
    changed ??= new Map(managers);
    changed.set(id, withSet(manager, set));
  }
  return changed ?? managers;
}

/** What an apply comes to. */
export type Applied =
  | { readonly type: "applied"; readonly object: KubeObject; readonly managers: Managers }
  /** Others manage what it would change, and it may not take it. */
  | { readonly type: "conflicts"; readonly conflicts: readonly FieldConflict[] };

/**
 * An apply of a configuration to the live object, both in the version of the view.
 * @throws KubeApiError 500 for more managed fields than can be stored
 */
export function applyConfiguration(
  view: FieldView,
  live: KubeObject,
  configuration: KubeObject,
  known: Managers,
  writer: Writer,
  force: boolean,
): Applied {
  const managers = reconcile(view, live, known);
  if (managers === undefined) throw tooManyFields(known.size);
  const id = identityText(writer);
  const previous = managers.get(id);
  const merged = mergeApplied(view.type, live, configuration, view) as KubeObject;
  const named = appliedSet(view.type, configuration, view);
  const set = view.ignored === undefined ? named : recursiveDifference(named, view.ignored);
  const { time, ...identity } = writer;
  const mine: Manager = { ...identity, time, set };
  const claimed: Managers = new Map([...managers, [id, mine]]);
  const object = pruned(view, merged, claimed, previous);
  const taken = takeFromOthers(view, live, object, claimed, id);
  if (taken.conflicts.length > 0 && !force) return { type: "conflicts", conflicts: taken.conflicts };

  const kept = difference(set, neverManaged);
  // The same apply again keeps its entry, time included, so that nothing is written.
  const isRepeated =
    previous !== undefined &&
    previous.apiVersion === writer.apiVersion &&
    isSame(taken.comparison) &&
    sameSet(previous.set, kept);
  const result = new Map(taken.managers);
  if (isEmpty(kept)) result.delete(id);
  else result.set(id, isRepeated ? previous : { ...mine, set: kept });
  return { type: "applied", object, managers: result };
}

/**
 * Removes from the merged object what the manager applied before and does not apply now (members, and items of lists
 * and maps), unless another manager owns it too.
 */
function pruned(
  view: FieldView,
  merged: KubeObject,
  managers: Managers,
  previous: Manager | undefined,
): KubeObject {
  if (previous === undefined || isEmpty(previous.set)) return merged;
  const { type } = view;
  const inVersion = view.convert(merged, previous.apiVersion);
  if (inVersion === undefined) return merged;
  const last = withNamedFields(previous.set, type);
  let result = (removeFields(type, inVersion, last) ?? {}) as KubeObject;
  const full = withNamedFields(fieldsOf(view, inVersion), type);

  const isServed = new Map<string, boolean>();
  for (const { apiVersion } of managers.values()) {
    if (isServed.has(apiVersion)) continue;
    isServed.set(apiVersion, view.convert(merged, apiVersion) !== undefined);
  }
  const served = [...managers.values()].filter(({ apiVersion }) => isServed.get(apiVersion));
  const managed = unionOf(served.map(({ set }) => set));
  const left = withNamedFields(fieldsOf(view, result), type);
  // What another manager has comes back (addBackOwnedItems).
  const unowned = difference(full, union(left, withNamedFields(managed, type)));
  result = (removeFields(type, inVersion, unowned) ?? {}) as KubeObject;

  const still = withNamedFields(fieldsOf(view, result), type);
  // So does what this manager has not applied before (addBackDanglingItems).
  const gone = intersection(difference(full, still), previous.set);
  result = (removeFields(type, inVersion, gone) ?? {}) as KubeObject;
  return view.convert(result, view.apiVersion) ?? merged;
}

function fieldsOf(view: FieldView, object: KubeObject): FieldSet {
  return appliedSet(view.type, object, view);
}

/** The conflicts that are none because a client-side apply has set these very values (see last-applied-fields.ts). */
export function conflictsBeyond(
  conflicts: readonly FieldConflict[],
  allowed: FieldSet,
): readonly FieldConflict[] {
  return conflicts.flatMap(({ manager, set }) => {
    const left = difference(set, allowed);
    return isEmpty(left) ? [] : [{ manager, set: left }];
  });
}
