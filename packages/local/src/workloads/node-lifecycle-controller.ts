/**
 * The life cycle of nodes: taints by condition and cordon (`node-taint-controller.ts`), and the condition by the lease
 * (`node-lease-controller.ts`). Source: Kubernetes node life cycle (taints by condition, node leases).
 */
import { trackWrites } from "@longshore/kube";
import { type Component, stopAll } from "@longshore/runtime";
import { startNodeLeaseController } from "./node-lease-controller.ts";
import { startNodeTaintController } from "./node-taint-controller.ts";
import type { WorkloadsEnv } from "./workloads-env.ts";

/**
 * Starts both controllers on the shared caches; they work in the background until they are stopped. They write taints and
 * the Ready condition, and evict nothing.
 */
export function startNodeLifecycleController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const controllers = [startNodeTaintController(env), startNodeLeaseController(env)];
  return { stop: () => stopAll(controllers) };
}
