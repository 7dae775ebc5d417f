export * from "./convert/index.ts";
export { isCordonedForCrossing } from "./crossing/cordon.ts";
export {
  type CrossingEnv,
  type CrossingOptions,
  type CrossingResult,
  objectsCarryingMarks,
  PreflightError,
  preflight,
  runCrossing,
  StepTimeoutError,
} from "./crossing/crossing.ts";
export * from "./crossing/crossing-events.ts";
export { drainNode } from "./crossing/drain.ts";
export { type CrossingJournal, JournalError, readJournal } from "./crossing/journal.ts";
export { csiNodeLacks, migratedPluginsOf, volumesLeft } from "./crossing/node-state.ts";
export { type Blocker, type CrossingObservation, findBlockers } from "./crossing/preflight.ts";
export {
  type CrossingDirection,
  type CrossingSubject,
  crossingSubject,
  UnknownPluginError,
} from "./crossing/subject.ts";
export { type VolumeForm, volumeFormOf } from "./crossing/volume-form.ts";
export * from "./platform.ts";
