/**
 * What comes next for a node that the node watcher looks at (external-health-monitor): when it counts as failed, and when
 * as recovered.
 *
 * Invariant: a failure is reported once, and a recovery only after it.
 */
import type { Node } from "@longshore/kube";

/** How long a node must not be ready before it counts as failed, in milliseconds. */
export const notReadyMs = 300_000;

/** What is remembered of a node. */
export interface NodeMemory {
  /** Since when it was seen not ready, by the monotonic clock; undefined: it was ready. */
  readonly notReadySinceMs?: number;
  /** Its failure was reported, its recovery not yet. */
  readonly failed: boolean;
}

/** One look at a node: what to report, and what to remember. */
export interface NodeLook {
  readonly report: "failed" | "recovered" | undefined;
  readonly memory: NodeMemory;
}

/** @param node undefined: it was deleted, which is a failure at once */
export function lookAtNode(node: Node | undefined, memory: NodeMemory | undefined, nowMs: number): NodeLook {
  const failed = memory?.failed ?? false;
  if (node === undefined || node.status?.phase === "Terminated") {
    return { report: failed ? undefined : "failed", memory: { failed: true } };
  }
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status === "True")
    return { report: failed ? "recovered" : undefined, memory: { failed: false } };
  // A node that does not say whether it is ready has only just come.
  if (ready === undefined) return { report: undefined, memory: { failed } };
  const notReadySinceMs = memory?.notReadySinceMs ?? nowMs;
  const isLong = nowMs - notReadySinceMs > notReadyMs;
  return {
    report: isLong && !failed ? "failed" : undefined,
    memory: { notReadySinceMs, failed: failed || isLong },
  };
}

/** A node as a look sees it. */
export interface ObservedNode {
  /** Undefined: it was deleted. */
  readonly node: Node | undefined;
  /** Undefined: it was not seen before. */
  readonly memory: NodeMemory | undefined;
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
}

/** What comes next for a node; `memory`: what is remembered of it then, undefined: nothing. */
export type NodeStep =
  | { readonly step: "reportFailed"; readonly memory: NodeMemory | undefined }
  | { readonly step: "reportRecovered"; readonly memory: NodeMemory | undefined }
  | { readonly step: "remember"; readonly memory: NodeMemory | undefined };

/** Decides for a node; pure. */
export function decideNodeStep({ node, memory, nowMs }: ObservedNode): NodeStep {
  const look = lookAtNode(node, memory, nowMs);
  // A deleted node that was reported needs no memory; a new node of its name starts without one.
  const kept = node === undefined ? undefined : look.memory;
  if (look.report === "failed") return { step: "reportFailed", memory: kept };
  if (look.report === "recovered") return { step: "reportRecovered", memory: kept };
  return { step: "remember", memory: kept };
}
