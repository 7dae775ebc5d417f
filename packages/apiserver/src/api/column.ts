/** A column of a table, as a kind describes its objects to people. */
import type { KubeObject } from "@longshore/kube";
import type { Behaviour } from "../versions/changes.ts";

/** One column and the cell it has for an object. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: string;
  /** Above 0: shown in wide tables only. */
  readonly priority?: number;
  /** What the column shows, in our own words; default: its name and the kind's. */
  readonly description?: string;
  /** Only in versions that have, or do not have, this behaviour. */
  readonly since?: Behaviour;
  readonly until?: Behaviour;
  readonly cell: (object: Row, now: Date) => unknown;
}

/** An object of any kind, as the cell of a column reads it. */
// biome-ignore lint/suspicious/noExplicitAny: cells look into objects of every kind, each into its own.
export type Row = KubeObject & Record<string, any>;
