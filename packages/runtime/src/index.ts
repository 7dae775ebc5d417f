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
  type FileKind,
  type FileStat,
  type Host,
  HostError,
  type Mount,
  type ProgramOptions,
  type ProgramResult,
  type WriteOptions,
} from "./host.ts";
export { assertNever, InvariantError, invariant } from "./invariant.ts";
export { errorChain, type LogFields, type Logger, silentLogger } from "./logger.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Meter,
  type MetricLabels,
  type MetricOptions,
  noMeter,
} from "./meter.ts";
export { type Random, SeededRandom, systemRandom } from "./random.ts";
export { SimulatedDisks, type SimulatedLoop } from "./simulated-disks.ts";
export { SimulatedHost, type SimulatedHostOptions } from "./simulated-host.ts";
export { systemClock } from "./system-clock.ts";
export { VirtualClock, type VirtualRunOptions, VirtualTimeError } from "./virtual-clock.ts";
