/** The condition of a node whose lease has run out. Pure. Source: Kubernetes node life cycle, node leases. */
import { apiTime, type Lease, type Node, type NodeCondition } from "@longshore/kube";

/** How long after its last renewal a lease has run out, in milliseconds. */
export const graceMs = 40_000;

/** The Ready condition of a node whose lease has run out, or undefined while there is nothing to say. */
export function lapsedCondition(node: Node, lease: Lease | undefined, now: Date): NodeCondition | undefined {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  if (ready === undefined || ready.status === "Unknown") return undefined;
  const seen = lease?.spec?.renewTime ?? ready.lastHeartbeatTime;
  if (seen === undefined || now.getTime() - Date.parse(seen) < graceMs) return undefined;
  return {
    ...ready,
    status: "Unknown",
    reason: "NodeStatusUnknown",
    message: "node agent stopped posting node status",
    lastTransitionTime: apiTime(now),
  };
}
