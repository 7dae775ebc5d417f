export {
  type LivenessProbe,
  type LivenessProbeEnv,
  type LivenessProbeOptions,
  startLivenessProbe,
} from "./liveness-probe.ts";
