/** When a node counts as failed (external-health-monitor, the node watcher). Pure. */
import type { Node, Pod } from "@longshore/kube";

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

/** The event on a claim whose pods are on a node that failed or recovered. */
export function nodeEvent(
  report: "failed" | "recovered",
  nodeName: string,
  claim: { readonly name?: string; readonly namespace?: string },
  pods: readonly Pod[],
): { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string } {
  if (report === "recovered") {
    return { type: "Normal", reason: "NodeRecovered", message: `Node: ${nodeName} recovered` };
  }
  const names = pods.map((pod) => `${pod.metadata?.name} `).join("");
  return {
    type: "Warning",
    reason: "NodeFailed",
    message: `Pods: [ ${names}] consuming PVC: ${claim.name} in namespace: ${claim.namespace} are now on a failed node: ${nodeName}`,
  };
}
