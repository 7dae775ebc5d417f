/** What the workload controllers and the scheduler need. */
import type { KubeClient, SharedInformers } from "@longshore/kube";
import type { RuntimeEnv } from "@longshore/runtime";

/** The seams of a controller with shared caches. */
export interface WorkloadsEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly informers: SharedInformers;
}
