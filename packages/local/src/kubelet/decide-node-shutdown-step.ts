/**
 * What a node that shuts down does next. Pure. Source: docs/behaviour/node-agent.md 14.
 *
 *     endPods(regular) ──► wait … ──► endPods(critical) ──► wait … ──► finish
 *
 * Invariants
 *  - The time of the critical pods begins at the latest when that of the others is over.
 *  - It finishes before its time is over only with all pods ended, their volumes unmounted, and the Node saying so.
 */
import type { Node, Pod, Stored } from "@longshore/kube";

/** How long the shutdown of a node may take. */
export interface ShutdownPeriods {
  /** All of it, in milliseconds (`shutdownGracePeriod`). */
  readonly totalMs: number;
  /** The part of it that is kept for critical pods, in milliseconds (`shutdownGracePeriodCriticalPods`). */
  readonly criticalPodsMs: number;
}

/** Whose turn it is to end: the critical pods serve the others to the last. */
export interface ShutdownPhase {
  readonly group: "regular" | "critical";
  /** When the pods of the group should have ended, on the monotonic clock in milliseconds. */
  readonly endsMs: number;
}

/** What is seen of a shutdown. */
export interface NodeShutdownObservation {
  readonly periods: ShutdownPeriods;
  /** Undefined: nothing has begun. */
  readonly phase: ShutdownPhase | undefined;
  readonly nowMs: number;
  /** Pods that have not ended, or whose volumes may be mounted. */
  readonly left: readonly Stored<Pod>[];
  /** The Node as the reporter has stored or read it last. */
  readonly node: Stored<Node> | undefined;
}

/** One action. */
export type NodeShutdownStep =
  | { readonly step: "endPods"; readonly phase: ShutdownPhase }
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "finish" };

/** The message of the condition `Ready` of a node that shuts down. */
export const shutdownMessage = "node is shutting down";

/** The least priority of a critical pod (scheduling.SystemCriticalPriority). */
const criticalPriority = 2_000_000_000;
/** Nothing wakes the shutdown when a volume has been unmounted, in milliseconds. */
const checkMs = 500;

/** Whether the pod ends after the others. */
export function isCriticalPod(pod: Pod): boolean {
  return (pod.spec?.priority ?? 0) >= criticalPriority;
}

/** Decides on the next step. */
export function decideNodeShutdownStep(observed: NodeShutdownObservation): NodeShutdownStep {
  const { periods, phase, nowMs, left, node } = observed;
  if (phase === undefined) {
    const endsMs = nowMs + periods.totalMs - periods.criticalPodsMs;
    return { step: "endPods", phase: { group: "regular", endsMs } };
  }
  if (phase.group === "critical") {
    return left.length === 0 && isReleased(node) ? { step: "finish" } : { step: "wait", ms: checkMs };
  }
  const leftMs = phase.endsMs - nowMs;
  return leftMs > 0 && !left.every(isCriticalPod)
    ? { step: "wait", ms: Math.min(checkMs, leftMs) }
    : { step: "endPods", phase: { group: "critical", endsMs: nowMs + periods.criticalPodsMs } };
}

/** Whether the Node says that it shuts down and has no volume in use: what is attached may be detached. */
function isReleased(node: Stored<Node> | undefined): boolean {
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.message === shutdownMessage && (node?.status?.volumesInUse ?? []).length === 0;
}
