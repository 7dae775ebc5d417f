/** The seams of Longshore, each with its real and its virtual form. */
export * from "./basics.ts";
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
export { kernelHost } from "./kernel-host.ts";
export { type RecordedLine, type RecordingLogger, recordingLogger } from "./logger-recording.ts";
export { createMeter, type PrometheusMeter } from "./meter-prometheus.ts";
export { type RecordingMeter, recordingMeter } from "./meter-recording.ts";
export { SimulatedDisks, type SimulatedLoop } from "./simulated-disks.ts";
export { SimulatedHost, type SimulatedHostOptions } from "./simulated-host.ts";
export { unprivilegedHost } from "./unprivileged-host.ts";
export { VirtualClock, type VirtualRunOptions, VirtualTimeError } from "./virtual-clock.ts";
