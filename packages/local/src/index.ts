/** A whole cluster on one machine: nodes, workloads, supervisor, writers of records, demo, driver qualification. */

export {
  agentProcess,
  type ProcessStatus,
  processesOf,
  signalClusterProcess,
} from "./cluster/cluster-processes.ts";
export { type ClusterStatus, statusOfCluster } from "./cluster/cluster-status.ts";
export {
  createInProcessCluster,
  type InProcessCluster,
  type InProcessClusterOptions,
  type Seams,
  standbyManager,
} from "./cluster/in-process-cluster.ts";
export type { DriverProgramRun, InProcessFlexVolumes } from "./cluster/in-process-drivers.ts";
export {
  type ClusterEnv,
  downCluster,
  fileGateControl,
  type OpenCluster,
  openCluster,
  type SupervisedCluster,
  stopCluster,
  upCluster,
} from "./cluster/process-cluster.ts";
export { type ProcessHealth, processHealth } from "./cluster/process-health.ts";
export { ephemeralVolumesDir } from "./components/csi-driver.ts";
export type { ContainerConfig, PodRuntime } from "./containers/pod-runtime.ts";
export type { Program, ProgramRun } from "./containers/program-pod-runtime.ts";
export { readPodLogs } from "./containers/read-pod-logs.ts";
export { type DemoCluster, type DemoOptions, runDemo } from "./demo/demo.ts";
export { type DemoReport, isProof } from "./demo/demo-report.ts";
export { type ProcessDemoOptions, runProcessDemo } from "./demo/process-demo.ts";
export {
  type ClusterConfig,
  clusterConfig,
  initialGates,
  type LocalNode,
  type OwnDriver,
} from "./layout/cluster-config.ts";
export { type ClusterLayout, clusterLayout } from "./layout/cluster-layout.ts";
export {
  commandText,
  commandWords,
  DriverCommandError,
  driverPlaceholders,
} from "./layout/driver-command.ts";
export { ClusterDirectoryError, readClusterConfig } from "./layout/files.ts";
export {
  type ClusterPlugin,
  classNameOf,
  clusterPlugin,
  clusterPlugins,
  everyPlugin,
  inlineVolume,
  inTreeHandle,
  type PluginName,
  pluginsNamed,
} from "./layout/plugins.ts";
export { createEmbeddedPlatform, type GateControl } from "./platform/embedded-platform.ts";
export {
  currentCrossing,
  readCrossingStatus,
  readCrossingStatuses,
  thisRunner,
} from "./processes/crossing-runner.ts";
export { CrossingInProgressError, lockCrossing } from "./processes/lock-crossing.ts";
export { mayGrowMounted, mayMount, requireDriverCommand } from "./processes/machine.ts";
export { processEnv, processHost } from "./processes/process-env.ts";
export { childEnvironment } from "./programs/child-environment.ts";
export {
  type ProcessQualificationOptions,
  runProcessQualification,
} from "./qualification/process-qualification.ts";
export {
  type Behaviour,
  type BehaviourResult,
  behaviours,
  type FeatureResult,
  type QualificationReport,
  reasonsAgainst,
  type Skippable,
  skippables,
  type Verdict,
  verdictOf,
} from "./qualification/qualification-report.ts";
export {
  type QualificationCluster,
  type QualificationOptions,
  runQualification,
} from "./qualification/run-qualification.ts";
export { setWithDevices, withDevices } from "./records/device-volumes.ts";
export { readerProgram, recordPrograms, writerProgram } from "./records/in-process-programs.ts";
export { deviceReaderCommand, deviceWriterCommand } from "./records/process-device-programs.ts";
export { readerCommand, writerCommand } from "./records/process-programs.ts";
export {
  acknowledgedRecords,
  lastRecord,
  lostRecords,
  recordLine,
  rewrittenRecords,
} from "./records/records.ts";
export { claimVolume, volumePod } from "./records/volume-pod.ts";
export { writerBudget, writerClaims, writerSet, writerSetName } from "./records/writer-set.ts";
