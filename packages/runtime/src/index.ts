/** The seams of Longshore, each with its real and its virtual form. */
export { type BackoffPolicy, backoffMs } from "./backoff.ts";
export { abortable, type Clock, DeadlineError, type Timer, withDeadline } from "./clock.ts";
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
export {
  type DiskCopy,
  type FileKind,
  type FileStat,
  type FileSystemUsage,
  type Host,
  HostError,
  type Mount,
  type ProgramOptions,
  type ProgramResult,
  type WriteOptions,
} from "./host.ts";
export { assertNever, InvariantError, invariant } from "./invariant.ts";
export { kernelHost } from "./kernel-host.ts";
export { KeyedLock } from "./keyed-lock.ts";
export { errorChain, type LogFields, type Logger, silentLogger } from "./logger.ts";
export { createLogger, type LoggerOptions, type LogLevel } from "./logger-pino.ts";
export { type RecordedLine, type RecordingLogger, recordingLogger } from "./logger-recording.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Meter,
  type MetricLabels,
  type MetricOptions,
  noMeter,
} from "./meter.ts";
export { createMeter, type PrometheusMeter } from "./meter-prometheus.ts";
export { type RecordingMeter, recordingMeter } from "./meter-recording.ts";
export { type Random, SeededRandom, systemRandom } from "./random.ts";
export { SimulatedDisks, type SimulatedLoop } from "./simulated-disks.ts";
export { SimulatedHost, type SimulatedHostOptions } from "./simulated-host.ts";
export { systemClock } from "./system-clock.ts";
export { unprivilegedHost } from "./unprivileged-host.ts";
export { VirtualClock, type VirtualRunOptions, VirtualTimeError } from "./virtual-clock.ts";
