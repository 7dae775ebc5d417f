/** The journals of classes and StatefulSets, and how they stand. */
import type { JournalPlaces } from "../conversion-journal.ts";
import type { ConversionDirection } from "../conversion-types.ts";
import { parseUnitJournal, readUnitJournals, type UnitJournals } from "../units/unit-journal.ts";
import { stepsOver } from "../units/unit-run.ts";
import {
  newNameOf,
  type PlannedReplacement,
  type ReplacementJournal,
  type ReplacementStep,
} from "./replacement-types.ts";

/** Where they lie. */
export const replacementJournals: UnitJournals<ReplacementJournal> = {
  label: "object",
  parse: (text, place) =>
    parseUnitJournal<ReplacementJournal>(text, place, ({ planned }) => typeof planned?.key === "string"),
  keyOf: ({ planned }) => planned.key,
};

/** All of them, by the key of the object. @throws JournalError */
export function readReplacementJournals(
  places: JournalPlaces,
  clusterId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReplacementJournal>> {
  return readUnitJournals(places, replacementJournals, clusterId, signal);
}

/** A journal at the beginning. */
export function newReplacementJournal(
  planned: PlannedReplacement,
  clusterId: string,
  direction: ConversionDirection,
  earlier?: ReplacementJournal,
): ReplacementJournal {
  return {
    version: 1,
    clusterId,
    direction,
    planned,
    done: earlier === undefined ? [] : stepsOver(earlier),
    requests: 0,
    ...(earlier?.writes === undefined ? {} : { writes: earlier.writes }),
  };
}

/** One object. */
export interface ReplacementStatusRow {
  /** e.g. `StatefulSet shop/web`. */
  readonly object: string;
  readonly direction: ConversionDirection;
  readonly state: "converted" | "undone" | "unfinished";
  /** Name of the object at the end. */
  readonly becomes: string;
  /** Of an unfinished one: the step that was begun last. */
  readonly step?: ReplacementStep;
  /** RFC 3339: when it ended, or when its last step was begun. */
  readonly at?: string;
  readonly requests: number;
}

/** By the name of the object. */
export function replacementStatusOf(journals: Iterable<ReplacementJournal>): readonly ReplacementStatusRow[] {
  const rows = [...journals].map(
    ({ planned, direction, begun, finishedAt, requests }): ReplacementStatusRow => {
      const isOpen = finishedAt === undefined;
      const at = finishedAt ?? begun?.at;
      return {
        object: planned.key,
        direction,
        state: isOpen ? "unfinished" : direction === "convert" ? "converted" : "undone",
        becomes: newNameOf(planned),
        ...(isOpen && begun !== undefined ? { step: begun.step } : {}),
        ...(at === undefined ? {} : { at }),
        requests,
      };
    },
  );
  return rows.sort((a, b) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0));
}
