/** The journals of conversions of inline volumes: one for each workload. */
import type { JournalPlaces } from "../conversion-journal.ts";
import type { ConversionDirection } from "../conversion-types.ts";
import { parseUnitJournal, readUnitJournals, type UnitJournals } from "../units/unit-journal.ts";
import { stepsOver } from "../units/unit-run.ts";
import type { InlineJournal, PlannedTemplate } from "./inline-types.ts";

/** Names the workload among all: a namespace has no dot in its name. */
export function templateKey({
  workload: { kind, namespace, name },
}: Pick<PlannedTemplate, "workload">): string {
  return `${kind.toLowerCase()}.${namespace}.${name}`;
}

/** Where they lie. */
export const inlineJournals: UnitJournals<InlineJournal> = {
  label: "template",
  parse: (text, place) =>
    parseUnitJournal<InlineJournal>(
      text,
      place,
      ({ planned }) => typeof planned?.workload?.name === "string",
    ),
  keyOf: ({ planned }) => templateKey(planned),
};

/** All of them, by {@link templateKey}. @throws JournalError */
export function readInlineJournals(
  places: JournalPlaces,
  clusterId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, InlineJournal>> {
  return readUnitJournals(places, inlineJournals, clusterId, signal);
}

/** A journal at the beginning. @param earlier that of a run before, which may have scaled the workload */
export function newInlineJournal(
  planned: PlannedTemplate,
  clusterId: string,
  direction: ConversionDirection,
  earlier?: InlineJournal,
): InlineJournal {
  return {
    version: 1,
    clusterId,
    direction,
    planned,
    done: earlier === undefined ? [] : stepsBefore(earlier),
    requests: 0,
    ...(earlier?.writes === undefined ? {} : { writes: earlier.writes }),
  };
}

/** A scaling up of an unfinished run may not have reached the workload, and is done again. */
function stepsBefore(journal: InlineJournal): InlineJournal["done"] {
  const isOpen = journal.begun?.step === "scale up" && isUnfinishedInline(journal);
  return isOpen ? journal.done.filter(({ at }) => at !== journal.begun?.at) : stepsOver(journal);
}

/** True when the workload is not where its run carries it. */
export const isUnfinishedInline = ({ finishedAt }: InlineJournal): boolean => finishedAt === undefined;

/** True from the moment in which a run may have scaled the workload, in either direction, until it has its replicas again. */
export function isInlineScaledDown({ begun, done, finishedAt }: InlineJournal): boolean {
  if (finishedAt !== undefined) return false;
  if (begun?.step === "scale down" || begun?.step === "scale up") return true;
  return done.findLast(({ step }) => step === "scale down" || step === "scale up")?.step === "scale down";
}
