/** The sidecars of a CSI driver: attacher, provisioner, registrar, … Each is one component on the seams. */
export { type AttacherOptions, startAttacher } from "./attacher/index.ts";
export {
  ClusterDriverRegistrarOptionError,
  type ClusterDriverRegistrarOptions,
  startClusterDriverRegistrar,
} from "./cluster-driver-registrar/index.ts";
export type { HealthAnswer } from "./common/health-answer.ts";
export type { Driver, SidecarEnv } from "./common/sidecar-env.ts";
export { UnsupportedByDriverError } from "./common/unsupported-by-driver-error.ts";
export {
  type HealthMonitorOptions,
  startHealthMonitor,
} from "./health-monitor/index.ts";
export {
  type LivenessProbe,
  type LivenessProbeEnv,
  type LivenessProbeOptions,
  startLivenessProbe,
} from "./liveness-probe/index.ts";
export {
  type Registrar,
  type RegistrarEnv,
  type RegistrarOptions,
  RegistrationError,
  registrationProbe,
  startNodeDriverRegistrar,
  unsupportedPlatform,
} from "./node-driver-registrar/index.ts";
export { type ProvisionerOptions, startProvisioner } from "./provisioner/index.ts";
export { type ResizerOptions, serveResizes, startResizer } from "./resizer/index.ts";
export {
  type SnapshotterOptions,
  serveSnapshotContents,
  startSnapshotter,
} from "./snapshotter/index.ts";
export { type SidecarName, type SidecarOptions, sidecarNames } from "./together/sidecar-kinds.ts";
export {
  type LeaseState,
  type Sidecars,
  SidecarsFailedError,
  type SidecarsOptions,
  startSidecars,
} from "./together/sidecars.ts";
