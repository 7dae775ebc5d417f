/**
 * Which nodes of a crossing have crossed. The journal is written again and again, so it names the newest of them alone and
 * counts the others; a run that goes on learns those from the nodes themselves.
 */
import type { CSINode, Node, Stored } from "@longshore/kube";
import { isCordonedForCrossing } from "./cordon.ts";
import type { CrossingJournal } from "./crossing-journal.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";
import { csiNodeLacks } from "./node-state.ts";

/** Most nodes that a journal names: with the longest names that Kubernetes allows they take an eighth of what a ConfigMap holds. */
export const namedNodesMax = 500;

/** The part of a journal that says which nodes are done. */
export type DoneRecord = Pick<CrossingJournal, "nodesDone" | "nodesDoneEarlier">;

/** How many nodes the record says are done. */
export const doneCountOf = ({ nodesDone, nodesDoneEarlier = 0 }: DoneRecord): number =>
  nodesDone.length + nodesDoneEarlier;

/** Names of the nodes that show that they have crossed, and that no crossing keeps cordoned. */
export function nodesSeenDone(
  subject: CrossingSubject,
  direction: CrossingDirection,
  nodes: readonly Stored<Node>[],
  csiNodes: readonly Stored<CSINode>[],
): readonly string[] {
  const byName = new Map(csiNodes.map((csiNode) => [csiNode.metadata.name, csiNode]));
  return nodes
    .filter((node) => !isCordonedForCrossing(node))
    .map(({ metadata }) => metadata.name)
    .filter((name) => csiNodeLacks(subject, direction, byName.get(name)) === undefined);
}

/** The nodes that are done, in order. */
export class NodesDone {
  readonly #names: Set<string>;

  /** @param seen those that show it, where the record only counts some */
  constructor({ nodesDone }: DoneRecord, seen: readonly string[] = []) {
    // In their order: the newest are at the end.
    const newest = new Set(nodesDone);
    this.#names = new Set([...seen.filter((name) => !newest.has(name)), ...newest]);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Adds one. @returns what the journal is to say */
  add(name: string): DoneRecord {
    this.#names.add(name);
    const earlier = this.#names.size - namedNodesMax;
    if (earlier <= 0) return { nodesDone: [...this.#names] };
    return { nodesDone: [...this.#names].slice(earlier), nodesDoneEarlier: earlier };
  }
}
