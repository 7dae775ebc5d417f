/** Which node a pod goes to. Pure. Source: docs/behaviour/controllers.md B7. */
import type { Node, Pod, Stored } from "@longshore/kube";
import type { ClusterView } from "./cluster-view.ts";
import { reasonAgainst } from "./reason-against.ts";

/** The node, or why no node fits, as kubectl users know it. */
export type NodeChoice =
  | { readonly nodeName: string }
  | { readonly nodeName: undefined; readonly reason: string };

/** Picks the fitting node with the fewest pods; ties go to the first by name. */
export function chooseNode(view: ClusterView, pod: Stored<Pod>): NodeChoice {
  const reasons = new Map<string, number>();
  const fitting: Stored<Node>[] = [];
  for (const node of view.nodes) {
    const reason = reasonAgainst(view, pod, node);
    if (reason === undefined) fitting.push(node);
    else reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const load = (node: Stored<Node>) => view.podsOn(node.metadata.name).length;
  const best = fitting.sort((a, b) => load(a) - load(b) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
  if (best !== undefined) return { nodeName: best.metadata.name };
  const list = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ");
  const reason = `0/${view.nodes.length} nodes are available: ${list || "none exist"}.`;
  return { nodeName: undefined, reason };
}
