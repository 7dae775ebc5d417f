/** The real forms of the seams for one process of a local cluster. */
import {
  createLogger,
  createMeter,
  type Host,
  kernelHost,
  type Logger,
  type PrometheusMeter,
  type RuntimeEnv,
  systemClock,
  systemRandom,
  unprivilegedHost,
} from "@longshore/runtime";
import type { ClusterConfig } from "../layout/cluster-config.ts";

/** The seams of a process, whose metrics can be read. */
export interface ProcessEnv extends RuntimeEnv {
  readonly meter: PrometheusMeter;
}

/** Clock, randomness, logs and metrics of this process. */
export function processEnv(component: string, logger?: Logger): ProcessEnv {
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
