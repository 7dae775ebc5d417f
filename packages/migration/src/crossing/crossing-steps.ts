/** The steps of a crossing, in order: what a run goes through and a plan shows. Pure. Source: docs/behaviour/migration-controllers.md C1. */
import type { Node, Stored } from "@longshore/kube";
import { isCordonedForCrossing } from "./cordon.ts";
import type { CrossingObservation } from "./crossing-observation.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";
import { csiNodeLacks } from "./node-state.ts";

/** The steps of each node. */
export const nodeSteps = ["cordon", "drain", "volumes gone", "flip", "CSINode agrees", "uncordon"] as const;

/** The steps of a node that this platform leaves to the crossing. */
export function nodeStepsOn({ rollsNodes }: { readonly rollsNodes?: boolean }): readonly NodeStep[] {
  return rollsNodes === true ? ["flip", "CSINode agrees"] : nodeSteps;
}

/** One of them. */
export type NodeStep = (typeof nodeSteps)[number];

/** Steps of the whole cluster before its nodes. */
export function stepsBeforeNodes(direction: CrossingDirection): readonly "control plane on"[] {
  // A node on CSI under a control plane that is not gets nothing attached (docs/behaviour/migration-controllers.md C3).
  return direction === "migrate" ? ["control plane on"] : [];
}

/** Steps of the whole cluster after its nodes. */
export function stepsAfterNodes(
  direction: CrossingDirection,
): readonly ("control plane off" | "objects clean")[] {
  return direction === "migrate" ? [] : ["control plane off", "objects clean"];
}

/**
 * Nodes by name; going back, the other way round. Those that a crossing has cordoned come first: their pods are on the other nodes, which
 * could not be drained.
 */
export function nodesInOrder(nodes: readonly Stored<Node>[], direction: CrossingDirection): string[] {
  const sorted = nodes.map(({ metadata }) => metadata.name).sort();
  const ordered = direction === "migrate" ? sorted : sorted.reverse();
  const cordoned = new Set(nodes.filter(isCordonedForCrossing).map(({ metadata }) => metadata.name));
  return [...ordered.filter((name) => cordoned.has(name)), ...ordered.filter((name) => !cordoned.has(name))];
}

/** The names in batches of so many; the nodes of a batch cross at the same time. */
export function batchesOf(names: readonly string[], size: number): readonly (readonly string[])[] {
  const batches: string[][] = [];
  for (let at = 0; at < names.length; at += size) batches.push(names.slice(at, at + size));
  return batches;
}

/** Names of the nodes that have not crossed yet, as far as their objects show it. */
export function nodesToCross(
  subject: CrossingSubject,
  direction: CrossingDirection,
  seen: Pick<CrossingObservation, "nodes" | "csiNodes">,
): Set<string> {
  const csiNodes = new Map(seen.csiNodes.map((csiNode) => [csiNode.metadata.name, csiNode]));
  const isToCross = (node: Stored<Node>) =>
    isCordonedForCrossing(node) ||
    csiNodeLacks(subject, direction, csiNodes.get(node.metadata.name)) !== undefined;
  return new Set(seen.nodes.filter(isToCross).map((node) => node.metadata.name));
}
