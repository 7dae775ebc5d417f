/** The real forms of the seams for one process of a local cluster. */
import {
  createLogger,
  createMeter,
  type Host,
  kernelHost,
  type Logger,
  type RuntimeEnv,
  systemClock,
  systemRandom,
  unprivilegedHost,
} from "@longshore/runtime";
import type { ClusterConfig } from "../layout/cluster-config.ts";

/** Clock, randomness, logs and metrics of this process. */
export function processEnv(component: string, logger?: Logger): RuntimeEnv {
  return {
    clock: systemClock,
    random: systemRandom,
    logger: (logger ?? createLogger({ format: "json", level: "info" })).child({ component }),
    meter: createMeter(),
  };
}

/** The host in the form that the cluster was made with. */
export function processHost(form: ClusterConfig["hostForm"]): Host {
  return form === "kernel" ? kernelHost() : unprivilegedHost();
}
