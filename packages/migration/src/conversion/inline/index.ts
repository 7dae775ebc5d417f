/** In-tree volumes that pod templates describe themselves, as claims of their drivers on the same disks. */
export {
  isUnfinishedInline,
  newInlineJournal,
  readInlineJournals,
  templateKey,
} from "./inline-journal.ts";
export { type InlinePlanOptions, templateForms, wantedKey } from "./inline-plan.ts";
export { runInlineConversion } from "./inline-run.ts";
export { type InlineJournal, type InlinePlan, type PlannedTemplate, templateName } from "./inline-types.ts";
export { openTemplates, planInlineConversion, planInlineUndo } from "./plan-inline.ts";
