/** The condition of a node whose lease has run out. Pure. Source: Kubernetes node life cycle, node leases. */
import { apiTime, type Node, type NodeCondition } from "@longshore/kube";

const graceMs = 40_000;

/**
 * The Ready condition of a node that has given no sign of life for 40 s, or undefined while there is nothing to say.
 * @param silentMs for how long the controller has seen no sign: by its own clock, since that of the node may be wrong
 */
export function lapsedCondition(node: Node, silentMs: number, now: Date): NodeCondition | undefined {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  if (ready === undefined || ready.status === "Unknown" || silentMs < graceMs) return undefined;
  return {
    ...ready,
    status: "Unknown",
    reason: "NodeStatusUnknown",
    message: "node agent stopped posting node status",
    lastTransitionTime: apiTime(now),
  };
}
