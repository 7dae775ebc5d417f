/** Whether the taints of a node are written. Pure. Source: Kubernetes node life cycle, taints by condition. */
import type { Node, Stored, Taint } from "@longshore/kube";
import { hasTaints, wantedTaints } from "./wanted-taints.ts";

/** What the controller sees of a node. */
export interface ObservedNodeTaints {
  readonly node: Stored<Node>;
}

/** One action of the controller. */
export type NodeTaintStep =
  | { readonly step: "writeTaints"; readonly taints: readonly Taint[] }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideNodeTaintStep({ node }: ObservedNodeTaints): NodeTaintStep {
  const taints = wantedTaints(node);
  return hasTaints(node, taints) ? { step: "settle" } : { step: "writeTaints", taints };
}
