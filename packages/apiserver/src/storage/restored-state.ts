/**
 * What a store begins with that is restored from a backup.
 *
 * Clients have seen the cluster at versions that the backup does not have. Were these given again to other changes, a watch
 * that goes on from one would miss what came before it, a cache would keep objects that are not there, and a write on
 * condition of a version would replace what its writer has never seen. So the store goes on from a revision that was never
 * given, and remembers nothing before it: watches of older versions get 410, and list again
 * ([decision 0036](../../../../docs/decisions/0036-restored-versions.md)).
 */
import type { Stored } from "@longshore/kube";
import { parseJson, toJson } from "../api/json.ts";
import type { StoredRecord, StoredState } from "./persistence.ts";

/**
 * By resource (`plural` or `plural.group`): what an object says that is not known to hold after a restore is taken out. Gives the object
 * itself where nothing is.
 */
export type RestoredObjects = Readonly<Record<string, (object: Stored) => Stored>>;

/** What a restored store is ahead of its backup at least, when the clock does not show a later time. */
const aheadMin = 1_000_000;

/**
 * The state of a store that is restored now from what a backup holds. Its revision is the time in milliseconds since 1970: no store with
 * fewer than a thousand commits a second has come as far. It is the version of the objects that are changed.
 */
export function restoredState(
  { revision, base, changes }: Pick<StoredState, "revision" | "base" | "changes">,
  now: Date,
  restoredObjects: RestoredObjects = {},
): StoredState {
  const restored = Math.max(revision + aheadMin, now.getTime());
  const records = lastOf(base, changes).map((record) => {
    const change = restoredObjects[record.resource];
    return change === undefined ? record : changed(record, change, restored);
  });
  return { revision: restored, forgotten: { "": restored }, base: records, changes: [] };
}

function changed(record: StoredRecord, change: RestoredObjects[string], revision: number): StoredRecord {
  const object = parseJson(String(record.json)) as Stored;
  const next = change(object);
  if (next === object) return record;
  const metadata = { ...next.metadata, resourceVersion: String(revision) };
  return { ...record, json: Buffer.from(toJson({ ...next, metadata })) };
}

/** Every object as the changes leave it. */
function lastOf(base: readonly StoredRecord[], changes: readonly StoredRecord[]): readonly StoredRecord[] {
  const last = new Map<string, StoredRecord>();
  for (const record of [base, changes].flat()) {
    const { resource, namespace, name } = record;
    const key = `${resource}/${namespace}/${name}`;
    if (record.json === undefined) last.delete(key);
    else last.set(key, { ...record, revision: 0 });
  }
  return [...last.values()];
}
