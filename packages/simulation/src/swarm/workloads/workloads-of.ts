/** The workloads of a world, as its plan says. */
import { pluginWriters } from "./plugin-writers.ts";
import type { Workload, WorkloadEnv } from "./workload.ts";

/** All that write in the world. */
export function workloadsOf(env: WorkloadEnv): readonly Workload[] {
  return env.plan.plugins.map((plugin) => pluginWriters(env, plugin));
}
