/** The columns of each kind's table. */
import type { Column } from "../api/column.ts";
import { type Kind, resourceKey } from "../api/kind.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { plainColumns } from "./column.ts";
import { coreTables } from "./core-tables.ts";
import { otherTables } from "./other-tables.ts";
import { recordedDescriptions } from "./recorded-descriptions.ts";
import { storageTables } from "./storage-tables.ts";
import { workloadTables } from "./workload-tables.ts";

export { podConditions } from "./pod-table.ts";

const tables: Readonly<Record<string, readonly Column[]>> = {
  ...coreTables,
  ...storageTables,
  ...workloadTables,
  ...otherTables,
};

/** What the column shows, for people. */
export function descriptionOf(kind: Kind, column: Column, emulated: EmulatedVersion): string {
  const recorded = emulated.has("recordedDescriptions") ? recordedDescriptions[resourceKey(kind)] : undefined;
  return recorded?.[column.name] ?? column.description ?? `${column.name} of the ${kind.kind}`;
}

/**
 * The columns of the kind; name and creation time where it defines none.
 * @param version of the kind's group, in which the objects are requested
 */
export function columnsOf(kind: Kind, version: string, emulated: EmulatedVersion): readonly Column[] {
  const columns = kind.columns?.(version) ?? tables[resourceKey(kind)] ?? plainColumns;
  return columns.filter(
    ({ since, until }) =>
      (since === undefined || emulated.has(since)) && (until === undefined || !emulated.has(until)),
  );
}
