/**
 * The seams without the machine: clock, randomness, log, life cycles, gates; and the lock of a directory. Part of the root,
 * and an entry of its own for programs that start faster without hosts and virtual forms.
 */
export { type BackoffPolicy, backoffMs } from "./backoff.ts";
export {
  abortable,
  type Clock,
  DeadlineError,
  deadlineOn,
  sleepOn,
  type Timer,
  withAnyOf,
  withDeadline,
} from "./clock/clock.ts";
export { systemClock } from "./clock/system-clock.ts";
export { TimeLimit } from "./clock/time-limit.ts";
export {
  type Component,
  type PeriodicOptions,
  periodically,
  type RuntimeEnv,
  StoppedError,
  stopAll,
  TaskGroup,
} from "./component.ts";
export {
  FeatureGateError,
  type FeatureGateSpec,
  type FeatureGates,
  featureGates,
  parseFeatureGates,
} from "./feature-gates.ts";
export { foreignLines, foreignText, hasUnfitCharacters } from "./foreign-text.ts";
export { assertNever, InvariantError, invariant } from "./invariant.ts";
export { KeyedLock } from "./locks/keyed-lock.ts";
export {
  lockDirectory,
  lockDirectoryWithFile,
  lockFile,
  type PathLock,
  PathLockedError,
  PathLockLostError,
} from "./locks/node-path-lock.ts";
export { errorChain, type LogFields, type Logger, silentLogger } from "./logger/logger.ts";
export { createLogger, type LoggerOptions, type LogLevel } from "./logger/logger-pino.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Meter,
  type MetricLabels,
  type MetricOptions,
  noMeter,
} from "./meter/meter.ts";
export { createMeter, type PrometheusMeter } from "./meter/prometheus-meter.ts";
export { MultiMap } from "./multi-map.ts";
export { underUmask } from "./node-umask.ts";
export { type Random, SeededRandom, systemRandom } from "./random.ts";
export { shellWord } from "./shell-word.ts";
