/** StorageClasses and StatefulSets whose immutable fields change. */
export {
  type ReplacementStatusRow,
  readReplacementJournals,
  replacementStatusOf,
} from "./replacement-journal.ts";
export type { PlannedReplacement, ReplacementJournal } from "./replacement-types.ts";
export {
  carryReplacements,
  openReplacements,
  planUndoReplacements,
  startedReplacements,
} from "./run-replacements.ts";
