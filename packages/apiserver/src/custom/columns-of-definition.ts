/** The columns of tables of custom resources (apiextensions-apiserver registry/customresource/tableconvertor). */

import type { Column } from "../api/column.ts";
import { isNumber, toJson } from "../api/json.ts";
import { age, nameColumn } from "../tables/column.ts";
import type { PrinterColumn } from "./definition.ts";
import { firstValueAt } from "./json-path.ts";

const ageOnly: readonly PrinterColumn[] = [
  {
    name: "Age",
    type: "date",
    jsonPath: ".metadata.creationTimestamp",
    description: "Time since the object was made",
  },
];

/** The name, and what the definition lists; the age where it lists nothing. */
export function columnsOfDefinition(listed: readonly PrinterColumn[] | undefined): readonly Column[] {
  const columns = listed === undefined || listed.length === 0 ? ageOnly : listed;
  return [nameColumn, ...columns.map(columnOf)];
}

function columnOf({ name, type, format, description, priority, jsonPath }: PrinterColumn): Column {
  return {
    name,
    type: type as Column["type"],
    ...(format === undefined ? {} : { format }),
    ...(priority === undefined ? {} : { priority }),
    description: description ?? `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    cell: (object, now) => cellOf(type, firstValueAt(object, jsonPath), now),
  };
}

/** A value of another type than the column's is not shown. */
function cellOf(type: string, value: unknown, now: Date): unknown {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "integer":
      return typeof value === "bigint" ? value : typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return isNumber(value) ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      if (typeof value !== "string") return null;
      return Number.isNaN(Date.parse(value)) ? "<invalid>" : age(value, now);
    default:
      return typeof value === "object" ? toJson(value) : String(value);
  }
}
