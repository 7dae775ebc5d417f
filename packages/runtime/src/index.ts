/** The seams of Longshore, each with its real and its virtual form. */
export * from "./basics.ts";
export { VirtualClock, type VirtualRunOptions, VirtualTimeError } from "./clock/virtual-clock.ts";
export {
  type ChownOptions,
  type DiskCopy,
  type FileKind,
  type FileStat,
  type FileSystemUsage,
  type Host,
  HostError,
  type Mount,
  type ProgramOptions,
  type ProgramResult,
  type TreeUsage,
  type WriteOptions,
} from "./host/host.ts";
export { kernelHost } from "./host/kernel-host.ts";
export { SimulatedDisks, type SimulatedLoop } from "./host/simulated-disks.ts";
export { SimulatedHost, type SimulatedHostOptions } from "./host/simulated-host.ts";
export { unprivilegedHost } from "./host/unprivileged-host.ts";
export { type RecordedLine, type RecordingLogger, recordingLogger } from "./logger/recording-logger.ts";
export { type RecordingMeter, recordingMeter } from "./meter/recording-meter.ts";
