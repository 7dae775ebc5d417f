/** Whether a node has lapsed. Pure. Source: Kubernetes node life cycle, node leases. */
import type { Node, NodeCondition, Stored } from "@longshore/kube";
import { lapsedCondition } from "./lapsed-condition.ts";

/** What the controller sees of a node. */
export interface ObservedNodeLease {
  readonly node: Stored<Node>;
  /** For how long the controller has seen neither a renewed lease nor a heartbeat of the node, in milliseconds. */
  readonly silentMs: number;
  readonly now: Date;
}

/** One action of the controller. */
export type NodeLeaseStep =
  | { readonly step: "markUnknown"; readonly conditions: readonly NodeCondition[] }
  | { readonly step: "checkLater" };

/** Decides on the next step. */
export function decideNodeLeaseStep({ node, silentMs, now }: ObservedNodeLease): NodeLeaseStep {
  const lapsed = lapsedCondition(node, silentMs, now);
  if (lapsed === undefined) return { step: "checkLater" };
  const conditions = (node.status?.conditions ?? []).map((c) => (c.type === "Ready" ? lapsed : c));
  return { step: "markUnknown", conditions };
}
