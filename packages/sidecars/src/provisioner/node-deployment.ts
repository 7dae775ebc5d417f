/**
 * One provisioner a node, each for the volumes of its own node (docs/behaviour/sidecars.md 2.10). Pure.
 *
 * A claim goes with its selected node. One with immediate binding has none: the first provisioner that writes its own
 * node into the claim gets it. Each first waits for a delay of its own, so that conflicts are rare.
 */
import {
  isDeleting,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
} from "@longshore/kube";
import type { Random } from "@longshore/runtime";
import { type Segments, volumeIsAccessible } from "@longshore/storage";
import { selectedNodeOf } from "./claim-writes.ts";

/** How a provisioner of one node works (`--node-deployment`). */
export interface NodeDeploymentOptions {
  /** The node it runs on (environment `NODE_NAME`). */
  readonly nodeName: string;
  /** Claims with immediate binding are taken, too (`--node-deployment-immediate-binding`); default true. */
  readonly immediateBinding?: boolean;
  /** Shortest pause before such a claim is taken (`--node-deployment-base-delay`), in milliseconds; default 20 s. */
  readonly baseDelayMs?: number;
  /** Longest pause (`--node-deployment-max-delay`), in milliseconds; default 60 s. */
  readonly maxDelayMs?: number;
}

/** The node of this provisioner, and what its driver says of it. */
export interface OwnNode {
  readonly name: string;
  /** Undefined: the driver knows no topology. */
  readonly segments: Segments | undefined;
  readonly immediateBinding: boolean;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** Whose claim it is: this node's, another node's, or no node's yet. */
export type Share = "owned" | "foreign" | "unassigned";

/** A claim that this process waits to take. */
export interface Contention {
  /** Those lost for it. */
  readonly races: number;
  /** On the monotonic clock. */
  readonly dueMs: number;
}

/**
 * Whose claim it is: this node's, another's, or free.
 * @param own undefined: one provisioner serves the cluster
 * @param nodeExists whether the cluster has a node of this name
 */
export function shareOf(
  own: OwnNode | undefined,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
  nodeExists: (name: string) => boolean,
): Share {
  if (own === undefined) return "owned";
  const selected = selectedNodeOf(claim);
  // A deleted node has no provisioner: every other one may return its claims to the scheduler.
  if (selected !== undefined) return selected === own.name || !nodeExists(selected) ? "owned" : "foreign";
  if (isDeleting(claim) || storageClass?.volumeBindingMode === "WaitForFirstConsumer") return "owned";
  if (storageClass === undefined) return "owned";
  return own.immediateBinding ? "unassigned" : "foreign";
}

/** Whether the volume can be reached from this node, so that its provisioner deletes it. */
export function isVolumeHere(own: OwnNode | undefined, pv: PersistentVolume): boolean {
  return own === undefined || volumeIsAccessible(pv.spec?.nodeAffinity, own.segments);
}

/** The pause before the claim is taken, in milliseconds: longer, and more varied, after each lost race. */
export function contentionDelayMs(own: OwnNode, races: number, random: Random): number {
  const widest = Math.min(own.maxDelayMs, own.baseDelayMs * 2 ** Math.min(races + 1, 30));
  const spread = Math.max(1, Math.floor(widest - own.baseDelayMs));
  return own.baseDelayMs + random.below(spread, "contention for a claim");
}
