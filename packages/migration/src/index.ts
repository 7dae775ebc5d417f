export {
  type Assessment,
  type AssessmentDiff,
  type AssessmentFinding,
  type AssessOptions,
  assess,
  assessmentRole,
  assessmentSchema,
  type Changes,
  type Code,
  type CollectManifestsOptions,
  type CollectOptions,
  collectCluster,
  collectManifests,
  diffOf,
  EarlierReportError,
  type FindingCode,
  findingCode,
  findingCodes,
  findingLink,
  type Inventory,
  minorVersionOf,
  parseSuppressions,
  parseTemplatePath,
  type ReportForm,
  type RuleFinding,
  renderReport,
  reportForms,
  type Severity,
  type SuppressedFinding,
  type Suppression,
  SuppressionError,
  type TemplatePath,
  TemplatePathError,
  type Verdict,
  type WatchClusterOptions,
  type When,
  watchCluster,
} from "./assess/index.ts";
export * from "./conversion/index.ts";
export {
  type ClaimSizes,
  type ConversionNote,
  type ConversionOptions,
  type ConversionTotals,
  convertManifests,
  type ManifestInput,
  ManifestInputError,
  type ManifestOptions,
  type ManifestWriter,
  type NoteSink,
  type OutputFormat,
} from "./convert/index.ts";
export { ContractError } from "./crossing/contract-signs.ts";
export { isCordonedForCrossing } from "./crossing/cordon.ts";
export {
  type CrossingResult,
  journalStoreOf,
  PreflightError,
  preflight,
  runCrossing,
} from "./crossing/crossing.ts";
export type { CrossingEvent, CrossingListener } from "./crossing/crossing-events.ts";
export {
  type CrossingJournal,
  JournalError,
  type Runner,
  type RunRecord,
  readJournal,
} from "./crossing/crossing-journal.ts";
export {
  CrossingLeaseError,
  crossingLeaseName,
  underCrossingLease,
} from "./crossing/crossing-lease.ts";
export type { CrossingObservation } from "./crossing/crossing-observation.ts";
export { type CrossingEnv, type CrossingOptions, defaultStepTimeoutMs } from "./crossing/crossing-options.ts";
export { type PlanOptions, planCrossing, readClusterId } from "./crossing/crossing-plan.ts";
export { crossingRoles } from "./crossing/crossing-rights.ts";
export { type CrossingStatus, crossingStatusOf } from "./crossing/crossing-status.ts";
export {
  type CrossingDirection,
  type CrossingSubject,
  crossingSubject,
  UnknownPluginError,
} from "./crossing/crossing-subject.ts";
export { type Finding, findingWords } from "./crossing/finding.ts";
export { inspectUnfinishedRun, type Served, type UnfinishedRun } from "./crossing/inspect-unfinished-run.ts";
export { configMapJournal, nodesDoneOf } from "./crossing/journal-store.ts";
export { csiNodeLacks, migratedPluginsOf, volumesLeft } from "./crossing/node-state.ts";
export { doneCountOf } from "./crossing/nodes-done.ts";
export { orderOfCrossings } from "./crossing/order-of-crossings.ts";
export { type CrossingPlan, PlanError, planSchema, readPlan } from "./crossing/plan-document.ts";
export { staleParts } from "./crossing/plan-drift.ts";
export type { CrossingMark, GateValues, Platform } from "./crossing/platform.ts";
export { preflightFindings } from "./crossing/preflight-findings.ts";
export { type VolumeForm, volumeFormOf } from "./crossing/volume-form.ts";
export { subjectName, type Wait, type WaitReport, type WaitSubject, waitWords } from "./crossing/wait.ts";
export { StepTimeoutError } from "./crossing/watch-step.ts";
export * from "./platforms/index.ts";
export {
  type ClusterStatus,
  type CrossingsRead,
  clusterStatusOf,
  readCrossings,
  readVolumeStory,
  type VolumeStatus,
  type VolumeStory,
} from "./status/index.ts";
