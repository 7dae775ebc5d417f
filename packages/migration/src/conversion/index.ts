/** Native CSI volumes in place of in-tree ones, on the same disks. */
export {
  conversionLabel,
  isUnfinishedConversion,
  originalVolume,
  readJournals,
} from "./conversion-journal.ts";
export type {
  ConversionEnv,
  ConversionEvent,
  ConversionPlanOptions,
  ConversionRunOptions,
  VolumeSelection,
} from "./conversion-options.ts";
export { conversionRoles } from "./conversion-rights.ts";
export { type ConversionResult, joinedResults, newJournal, runConversion } from "./conversion-run.ts";
export { type ConversionStatusRow, conversionStatusOf } from "./conversion-status.ts";
export type {
  ConversionDirection,
  ConversionPlan,
  Difference,
  HandleRule,
  ObjectOwner,
  PlannedVolume,
  Refusal,
  RefusalCode,
  ScaledWorkload,
  VolumeJournal,
  VolumeStep,
} from "./conversion-types.ts";
export { convertedFromAnnotation } from "./converted-from.ts";
export {
  type InlineJournal,
  type InlinePlan,
  type InlinePlanOptions,
  isUnfinishedInline,
  newInlineJournal,
  openTemplates,
  type PlannedTemplate,
  planInlineConversion,
  planInlineUndo,
  readInlineJournals,
  runInlineConversion,
  templateForms,
  templateKey,
  templateName,
  wantedKey,
} from "./inline/index.ts";
export { withLaterWorkloads } from "./later-workloads.ts";
export {
  convertedClass,
  convertedTemplates,
  diffOfObjects,
  HandleRuleError,
  handleRulesSchema,
  type InlineConversion,
  inlineVolumes,
  parseHandleRules,
} from "./objects/index.ts";
export { type OfflineConversion, type OfflineFile, offlineConversion } from "./offline/index.ts";
export { planConversion } from "./plan-conversion.ts";
export { planUndo, type UndoPlan } from "./plan-undo.ts";
export {
  carryReplacements,
  openReplacements,
  type PlannedReplacement,
  planUndoReplacements,
  type ReplacementJournal,
  type ReplacementStatusRow,
  readReplacementJournals,
  replacementStatusOf,
  startedReplacements,
} from "./replacements/index.ts";
export { type UnfinishedChoice, unfinishedChoice } from "./unfinished-choice.ts";
export { ConversionBlockedError, refusalWords } from "./volume-run.ts";
