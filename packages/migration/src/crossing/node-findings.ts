/** Preflight of nodes: their readiness, deletion, cordons, and the driver on them. Pure. */
import type { CSINode, Node, Stored } from "@longshore/kube";
import { isCordonedForCrossing } from "./cordon.ts";
import type { Finding, PreflightView } from "./finding.ts";

/** Problems of the nodes that block or delay a crossing. */
export function nodeFindings(view: PreflightView): Finding[] {
  const csiNodes = new Map(view.seen.csiNodes.map((csiNode) => [csiNode.metadata.name, csiNode]));
  return view.seen.nodes.flatMap((node) => [
    ...driverMissing(view, node, csiNodes.get(node.metadata.name)),
    ...(view.toCross.has(node.metadata.name)
      ? [...notReady(view, node), ...beingDeleted(node), ...cordonedByOthers(node)]
      : []),
  ]);
}

function driverMissing(
  { subject, direction }: PreflightView,
  node: Stored<Node>,
  csiNode: Stored<CSINode> | undefined,
): Finding[] {
  if (direction === "rollback") return [];
  if (csiNode?.spec.drivers?.some((d) => d.name === subject.driverName) === true) return [];
  return [
    {
      severity: "blocker",
      object: `Node ${node.metadata.name}`,
      reason: `the driver ${subject.driverName} is not registered there`,
      remedy: "deploy the driver's node part on every node and wait until its CSINode lists it",
    },
  ];
}

/** Going back may be what brings a node back, and so may going on with one that is being carried. */
function notReady({ direction }: PreflightView, node: Stored<Node>): Finding[] {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  if (ready?.status === "True") return [];
  const since = ready?.lastTransitionTime === undefined ? "" : ` since ${ready.lastTransitionTime}`;
  const why = ready?.message === undefined || ready.message === "" ? "" : ` (${ready.message})`;
  const mayGoOn = direction === "rollback" || isCordonedForCrossing(node);
  return [
    {
      severity: mayGoOn ? "warning" : "blocker",
      object: `Node ${node.metadata.name}`,
      field: "status.conditions[Ready]",
      reason:
        ready === undefined
          ? "it has never reported its readiness"
          : `it is ${ready.status === "False" ? "not ready" : "of unknown readiness"}${since}${why}`,
      remedy: "bring its agent back, or delete the node if it is gone for good",
    },
  ];
}

function beingDeleted(node: Stored<Node>): Finding[] {
  if (node.metadata.deletionTimestamp === undefined) return [];
  const finalizers = node.metadata.finalizers ?? [];
  return [
    {
      severity: "blocker",
      object: `Node ${node.metadata.name}`,
      field: "metadata.deletionTimestamp",
      reason: `it is being deleted since ${node.metadata.deletionTimestamp}`,
      remedy:
        finalizers.length === 0
          ? "wait until it is gone"
          : `wait until it is gone; its finalizers ${finalizers.join(", ")} hold it`,
    },
  ];
}

function cordonedByOthers(node: Stored<Node>): Finding[] {
  if (node.spec?.unschedulable !== true || isCordonedForCrossing(node)) return [];
  return [
    {
      severity: "warning",
      object: `Node ${node.metadata.name}`,
      field: "spec.unschedulable",
      reason: "it is cordoned already, and not by a crossing: it is carried, and stays cordoned after it",
      remedy: "uncordon it if its pods are to come back",
    },
  ];
}
