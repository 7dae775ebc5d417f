/** What writes in a swarm's world: the pods on one kind of volumes. */
import type { InProcessCluster } from "@longshore/local";
import type { SwarmPlan, VolumeKind } from "../swarm-plan.ts";

/** What a workload needs. */
export interface WorkloadEnv {
  readonly cluster: InProcessCluster;
  readonly plan: SwarmPlan;
  readonly signal: AbortSignal;
  /** Waits until it holds. @throws where it does not come to hold */
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

/** The pods on one kind of volumes. */
export interface Workload {
  /** What it is counted as; left out: it is the one that every world has. */
  readonly kind?: VolumeKind;
  /** By these names its pods report what they read and write. */
  readonly writers: readonly string[];
  /** Makes the pods and what they need. */
  create(): Promise<void>;
  /** Lets the pods end. */
  end(): Promise<void>;
  /** Removes the volumes; once the pods have ended and nothing is attached. */
  remove(): Promise<void>;
}

/** The namespace of all workloads. */
export const namespace = "default";
