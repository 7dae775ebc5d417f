/** What the passes over capacity objects work with. */
import type { FlowControl, OwnerReference } from "@longshore/kube";
import type { BackoffPolicy } from "@longshore/runtime";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import type { PlanContext } from "./plan-view.ts";

/** The seams, caches and settings of capacity tracking. */
export interface CapacityContext extends PlanContext {
  readonly env: SidecarEnv;
  readonly namespace: string;
  readonly managedBy: string;
  /** Undefined: the objects outlive the provisioner's workload. */
  readonly owner: OwnerReference | undefined;
  readonly pollIntervalMs: number;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  readonly threads: number;
  readonly backoff: BackoffPolicy;
  /** How fast objects are written; undefined: as fast as the server takes them. */
  readonly writes: FlowControl | undefined;
}
