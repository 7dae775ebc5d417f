/**
 * Who manages which fields of an object: `metadata.managedFields`, read and written. Managers never change; one that
 * a write does not concern keeps its entry, so that stored objects share it (apiserver, fieldmanager/internal).
 */
import { own, ownParsed } from "../api/own.ts";
import { spendTime } from "../api/work-time.ts";
import {
  emptySet,
  type FieldSet,
  FieldsError,
  type FieldsV1,
  fromFieldsV1,
  isEmpty,
  pathCount,
  toFieldsV1,
  union,
} from "./field-set.ts";

/** How a manager writes. */
export type Operation = "Apply" | "Update";

/** One entry of `metadata.managedFields`. */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: unknown;
  readonly subresource?: string;
}

/** What identifies a manager. */
export interface ManagerIdentity {
  readonly manager: string;
  readonly operation: Operation;
  /** The API version of the fields; part of the identity only for updates. */
  readonly apiVersion: string;
  readonly subresource: string;
}

/** A manager with its fields. */
export interface Manager extends ManagerIdentity {
  readonly time: string | undefined;
  readonly set: FieldSet;
  /** The entry that says all this, where there is one. */
  readonly entry?: ManagedFieldsEntry;
}

/** Managers by identity, see {@link identityText}. */
export type Managers = ReadonlyMap<string, Manager>;

/** No managers. */
export const noManagers: Managers = new Map();

/** Texts of identities: there are few managers, and each writes again and again. */
const identityTexts = new Map<string, string>();
const identityTextsMax = 1000;

/** The text that identifies a manager; also the last sort key of managers. */
export function identityText(identity: ManagerIdentity): string {
  const { manager, operation, apiVersion, subresource } = identity;
  const key = `${manager}\0${operation}\0${apiVersion}\0${subresource}`;
  let text = identityTexts.get(key);
  if (text === undefined) {
    text = writtenIdentity(identity);
    if (identityTexts.size >= identityTextsMax) identityTexts.clear();
    // A name with a NUL could be read as another key.
    if (key.split("\0").length === 4) identityTexts.set(key, text);
  }
  return text;
}

function writtenIdentity({ manager, operation, apiVersion, subresource }: ManagerIdentity): string {
  return JSON.stringify({
    ...(manager === "" ? {} : { manager }),
    operation,
    ...(operation === "Apply" ? {} : { apiVersion }),
    ...(subresource === "" ? {} : { subresource }),
  });
}

/** The managers that the entries say; undefined for entries that cannot be. */
export function readManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers | undefined {
  if (entries === undefined || entries.length === 0) return noManagers;
  const managers = new Map<string, Manager>();
  for (const entry of entries) {
    spendTime();
    const manager = readManager(entry);
    if (manager === undefined) return undefined;
    managers.set(identityText(manager), manager);
  }
  return managers;
}

function readManager(entry: ManagedFieldsEntry): Manager | undefined {
  const { manager = "", operation, apiVersion = "", subresource = "", time, fieldsType, fieldsV1 } = entry;
  if (operation !== "Apply" && operation !== "Update") return undefined;
  if (apiVersion === "" || fieldsType !== "FieldsV1") return undefined;
  try {
    const set = fieldsV1 === undefined ? emptySet : fromFieldsV1(fieldsV1);
    return { manager, operation, apiVersion, subresource, time, set, entry };
  } catch (error) {
    if (error instanceof FieldsError) return undefined;
    throw error;
  }
}

/** True for entries by which a client asks to remove all managers. */
export function isReset(entries: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (entries === undefined || entries.length > 1) return false;
  return entries[0] === undefined || Object.keys(entries[0]).length === 0;
}

/** The entries of the managers, in their order; undefined when there are none. */
export function writeManagers(managers: Managers): readonly ManagedFieldsEntry[] | undefined {
  if (managers.size === 0) return undefined;
  if (managers.size === 1) {
    for (const manager of managers.values()) return entriesOfOne(manager);
  }
  const sorted = [...managers.values()].sort(compareManagers);
  return own(sorted.map((manager) => manager.entry ?? entryOf(manager)));
}

/** The last entries of each set: of objects that are made in the same second, one has made most. */
const lastOfOne = new WeakMap<
  FieldSet,
  { readonly manager: Manager; readonly entries: readonly ManagedFieldsEntry[] }
>();

function entriesOfOne(manager: Manager): readonly ManagedFieldsEntry[] {
  if (manager.entry !== undefined) return own([manager.entry]);
  const last = lastOfOne.get(manager.set);
  if (last !== undefined && last.manager.time === manager.time && isSameManager(last.manager, manager)) {
    return last.entries;
  }
  const entries = own([entryOf(manager)]);
  lastOfOne.set(manager.set, { manager, entries });
  return entries;
}

function isSameManager(a: ManagerIdentity, b: ManagerIdentity): boolean {
  return (
    a.manager === b.manager &&
    a.operation === b.operation &&
    a.apiVersion === b.apiVersion &&
    a.subresource === b.subresource
  );
}

function entryOf({ manager, operation, apiVersion, time, set, subresource }: Manager): ManagedFieldsEntry {
  return own({
    ...(manager === "" ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1: shared(set),
    ...(subresource === "" ? {} : { subresource }),
  });
}

/** Sets as JSON, by their text: objects of one shape share them. */
const known = new Map<string, FieldsV1>();

/** How many are kept, and how long their texts may be. */
const knownMax = 2000;
const knownLengthMax = 8192;
/** Length of the shortest part of a path in JSON. */
const shortestPart = '"i:0":{}'.length;

/** What was written last of a set: who writes the same fields again keeps the set. */
const written = new WeakMap<FieldSet, FieldsV1>();

function shared(set: FieldSet): FieldsV1 {
  let fields = written.get(set);
  if (fields === undefined) {
    fields = writtenSet(set);
    written.set(set, fields);
  }
  return fields;
}

function writtenSet(set: FieldSet): FieldsV1 {
  const fields = toFieldsV1(set);
  // Too long to share with other objects. It was made just now, so freezing it in place is safe.
  if (pathCount(set) > knownLengthMax / shortestPart) return ownParsed(fields);
  const text = JSON.stringify(fields);
  if (text.length > knownLengthMax) return own(fields);
  let kept = known.get(text);
  if (kept === undefined) {
    kept = own(fields);
    if (known.size >= knownMax) known.clear();
    known.set(text, kept);
  }
  return kept;
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const seconds = (time: string | undefined) =>
  time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0;

function compareManagers(a: Manager, b: Manager): number {
  return (
    byText(a.operation, b.operation) ||
    seconds(a.time) - seconds(b.time) ||
    byText(a.manager, b.manager) ||
    byText(a.apiVersion, b.apiVersion) ||
    byText(a.subresource, b.subresource)
  );
}

/** The manager with other fields. */
export function withSet(manager: Manager, set: FieldSet): Manager {
  if (set === manager.set) return manager;
  const { entry: _, ...rest } = manager;
  return { ...rest, set };
}

/** Maximum number of update managers that an object lists separately. */
const updatersMax = 10;

/** The name of the entry that combines the oldest managers. */
const ancientChanges = "ancient-changes";

/** Limits the update managers to {@link updatersMax}: combines the oldest ones into one entry for each API version. */
export function capUpdaters(managers: Managers): Managers {
  const updaters = [...managers].filter(([, { operation }]) => operation === "Update");
  if (updaters.length <= updatersMax) return managers;
  updaters.sort(([a, left], [b, right]) => seconds(left.time) - seconds(right.time) || byText(a, b));
  const result = new Map(managers);
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const [id, { set, apiVersion, time }] of updaters) {
    if (count <= updatersMax) break;
    const first = firstOfVersion.get(apiVersion);
    // The oldest of a version keeps its name until another one is combined with it.
    if (first === undefined) {
      firstOfVersion.set(apiVersion, id);
      continue;
    }
    const identity = { manager: ancientChanges, operation: "Update", apiVersion, subresource: "" } as const;
    const bucket = identityText(identity);
    const before = result.get(bucket)?.set ?? result.get(first)?.set ?? emptySet;
    if (!result.has(bucket)) result.delete(first);
    if (id !== bucket) result.delete(id);
    result.set(bucket, { ...identity, time, set: union(before, set) });
    count--;
  }
  return result;
}

/** Without managers that have no fields. */
export function withoutIdle(managers: Managers): Managers {
  for (const { set } of managers.values()) {
    if (isEmpty(set)) return new Map([...managers].filter(([, manager]) => !isEmpty(manager.set)));
  }
  return managers;
}
