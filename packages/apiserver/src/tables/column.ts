/** What columns of tables are made of, and the ways of cells that many kinds share. */
import type { Column, Row } from "../api/column.ts";
import { humanDuration } from "./human-duration.ts";

/** A column of texts. */
export const text = (name: string, cell: Column["cell"]): Column => ({ name, type: "string", cell });
/** A column of texts that only a wide table shows (`kubectl get -o wide`). */
export const wide = (name: string, cell: Column["cell"]): Column => ({
  name,
  type: "string",
  priority: 1,
  cell,
});
/** A column of integers. */
export const integer = (name: string, cell: Column["cell"]): Column => ({ name, type: "integer", cell });
/** A column of booleans. */
export const boolean = (name: string, cell: Column["cell"]): Column => ({ name, type: "boolean", cell });
/** The name of the object. */
export const nameColumn: Column = {
  name: "Name",
  type: "string",
  format: "name",
  cell: (o) => o.metadata?.name,
};
/** How long ago the object was created, as a duration for people. */
export const ageColumn: Column = text("Age", (o, now) => age(o.metadata?.creationTimestamp, now));

/** The columns of kinds that define none. */
export const plainColumns: readonly Column[] = [
  nameColumn,
  { name: "Created At", type: "date", cell: (o) => o.metadata?.creationTimestamp ?? "<unknown>" },
];

/** How long ago a time is. */
export function age(time: string | undefined | null, now: Date): string {
  return time === undefined || time === null ? "<unknown>" : humanDuration(now.getTime() - Date.parse(time));
}

/** True for an object that is on its way out. */
export const deleting = (o: Row): boolean => o.metadata?.deletionTimestamp !== undefined;

/** Items with commas between. */
export const joined = (list: readonly unknown[] | undefined, between = ","): string =>
  list?.length ? list.join(between) : "<none>";

/** Labels, in the order of their keys. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const keys = Object.keys(labels ?? {}).sort();
  return keys.length === 0 ? "<none>" : keys.map((key) => `${key}=${labels?.[key]}`).join(",");
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** A label selector as people write it: `app=web,tier in (a,b),!old`. */
export function selectorText(selector: Row["spec"] | undefined): string {
  if (selector === undefined || selector === null) return "<none>";
  const labels = Object.entries((selector.matchLabels ?? {}) as Record<string, string>).map(
    ([key, value]) => [key, `${key}=${value}`] as const,
  );
  const expressions = ((selector.matchExpressions ?? []) as readonly Requirement[]).map(
    ({ key, operator, values = [] }) => [key, requirementText(key, operator, values)] as const,
  );
  const all = [...labels, ...expressions].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return all.length === 0 ? "<none>" : all.map(([, shown]) => shown).join(",");
}

function requirementText(key: string, operator: string, values: readonly string[]): string {
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "In":
      return `${key} in (${[...values].sort().join(",")})`;
    default:
      return `${key} notin (${[...values].sort().join(",")})`;
  }
}

/** Names and images of the containers of a template, for the wide tables of workloads. */
export const containerColumns: readonly Column[] = [
  wide("Containers", (o) => joined(o.spec?.template?.spec?.containers?.map((c: Row) => c.name))),
  wide("Images", (o) => joined(o.spec?.template?.spec?.containers?.map((c: Row) => c.image))),
];
