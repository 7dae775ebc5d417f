/**
 * Where a driver may make a volume: the topology requirement of CreateVolume (docs/behaviour/sidecars.md 2.6, after
 * external-provisioner's GenerateAccessibilityRequirements).
 *
 * Keys come from one node only, the selected one or, for immediate binding, any that has some: a
 * single source of truth, so that one compromised node cannot widen the others' topology.
 */
import type { CSINode, Node, TopologySelectorTerm } from "@longshore/kube";
import { topologyKeysOf } from "./csi-node.ts";
import type { Segments } from "./volume-node-affinity.ts";

/** No topology can be required: wait or choose another node. */
export class TopologyError extends Error {
  override readonly name = "TopologyError";
  /** The selected node is gone (or has no CSINode), so another must be chosen. */
  readonly nodeNotFound: boolean;
  constructor(message: string, nodeNotFound = false) {
    super(message);
    this.nodeNotFound = nodeNotFound;
  }
}

/** What the driver must and would best fulfil. */
export interface AccessibilityRequirements {
  readonly requisite: readonly Segments[];
  readonly preferred: readonly Segments[];
}

/** What an earlier attempt for the same claim saw; it wins over the present, so that a retry asks for the same. */
export interface TopologyMemory {
  readonly topologyKeys?: readonly string[];
  /** Labels of the selected node. */
  readonly nodeLabels?: Segments;
  readonly requisiteTerms?: readonly Segments[];
}

/** What the requirement is computed from. */
export interface TopologyQuestion {
  readonly driverName: string;
  readonly pvcName: string;
  readonly allowedTopologies: readonly TopologySelectorTerm[];
  /** Undefined: immediate binding. */
  readonly selectedNode: string | undefined;
  /** Only the selected node's topology will do. */
  readonly strictTopology: boolean;
  /** Immediate binding requires the topologies of the whole cluster; otherwise nothing. */
  readonly immediateTopology: boolean;
  readonly csiNodes: readonly CSINode[];
  readonly nodes: readonly Node[];
  readonly memory?: TopologyMemory;
}

type Segment = readonly [key: string, value: string];
/** Segments sorted by key. */
type Term = readonly Segment[];

/**
 * The requirement, and what to remember for a retry; `undefined` requirements: none is sent.
 * @throws TopologyError when the cluster does not give what is needed
 */
export function accessibilityRequirements(question: TopologyQuestion): {
  readonly requirements: AccessibilityRequirements | undefined;
  readonly memory: TopologyMemory;
} {
  const selected =
    question.selectedNode === undefined ? undefined : selectedTopology(question, question.selectedNode);
  const { terms, keys } = requisiteTerms(question, selected);
  const topologyKeys = selected?.keys ?? keys;
  const memory: TopologyMemory = {
    ...(topologyKeys === undefined ? {} : { topologyKeys }),
    ...(selected === undefined ? {} : { nodeLabels: selected.labels }),
    ...(keys === undefined && question.memory?.requisiteTerms === undefined
      ? {}
      : { requisiteTerms: terms.map(segmentsOf) }),
  };
  if (terms.length === 0) return { requirements: undefined, memory };
  const requisite = sortedUnique(terms);
  const preferred = preferredTerms(question, requisite, selected?.term);
  return {
    requirements: { requisite: requisite.map(segmentsOf), preferred: preferred.map(segmentsOf) },
    memory,
  };
}

interface SelectedTopology {
  readonly keys: readonly string[];
  readonly labels: Segments;
  readonly term: Term;
}

function selectedTopology(question: TopologyQuestion, nodeName: string): SelectedTopology {
  const { memory } = question;
  const keys = memory?.topologyKeys ?? keysOfNode(question, nodeName);
  if (keys.length === 0) {
    throw new TopologyError(`no topology key found for node ${nodeName}: is the driver running there?`);
  }
  const labels = memory?.nodeLabels ?? labelsOfNode(question, nodeName);
  const term = termOf(labels, keys);
  if (term === undefined) {
    const missing = keys.filter((key) => !Object.hasOwn(labels, key));
    throw new TopologyError(`node ${nodeName} lacks the topology label ${missing.join(", ")} of its CSINode`);
  }
  return { keys, labels, term };
}

function keysOfNode({ csiNodes, driverName }: TopologyQuestion, nodeName: string): readonly string[] {
  const csiNode = csiNodes.find(({ metadata }) => metadata?.name === nodeName);
  if (csiNode === undefined) throw new TopologyError(`node ${nodeName} has no CSINode`, true);
  return topologyKeysOf(csiNode, driverName);
}

function labelsOfNode({ nodes }: TopologyQuestion, nodeName: string): Segments {
  const node = nodes.find(({ metadata }) => metadata?.name === nodeName);
  if (node === undefined) throw new TopologyError(`node ${nodeName} does not exist`, true);
  return node.metadata?.labels ?? {};
}

/** The terms to choose from; `keys` when they were gathered from the cluster. */
function requisiteTerms(
  question: TopologyQuestion,
  selected: SelectedTopology | undefined,
): { readonly terms: readonly Term[]; readonly keys?: readonly string[] } {
  const { allowedTopologies, strictTopology, immediateTopology, memory } = question;
  if (selected !== undefined && strictTopology) {
    const allowed = flatten(allowedTopologies);
    if (allowedTopologies.length > 0 && !allowed.some((term) => isSubset(term, selected.term))) {
      throw new TopologyError(`node ${question.selectedNode} is not in the class's allowedTopologies`);
    }
    return { terms: [selected.term] };
  }
  if (allowedTopologies.length > 0) return { terms: flatten(allowedTopologies) };
  if (selected === undefined && !immediateTopology) return { terms: [] };
  // What an earlier attempt has seen: a retry must send the same request (docs/behaviour/sidecars.md 2.6).
  if (memory?.requisiteTerms !== undefined) return { terms: memory.requisiteTerms.map(sortedTerm) };
  const keys = selected?.keys ?? anyKeys(question);
  const terms = question.nodes
    .map(({ metadata }) => termOf(metadata?.labels ?? {}, keys))
    .filter((term): term is Term => term !== undefined);
  if (terms.length === 0)
    throw new TopologyError("no topology found: no node carries all keys of the driver");
  return { terms: sortedUnique(terms), keys };
}

/** Keys for immediate binding: those of the first CSINode that has some. */
function anyKeys({ csiNodes, driverName, memory }: TopologyQuestion): readonly string[] {
  if (memory?.topologyKeys !== undefined) return memory.topologyKeys;
  for (const csiNode of csiNodes) {
    const keys = topologyKeysOf(csiNode, driverName);
    if (keys.length > 0) return keys;
  }
  throw new TopologyError(`no available topology found: the driver has topology keys on no node`);
}

/** Every term once, the best first: the selected node's, or one that spreads a StatefulSet's claims. */
function preferredTerms(
  question: TopologyQuestion,
  requisite: readonly Term[],
  selected: Term | undefined,
): readonly Term[] {
  if (selected === undefined) {
    const { hash, index } = pvcNameHash(question.pvcName);
    // `>>> 0` wraps the sum as uint32 does in the reference (docs/behaviour/sidecars.md 2.6).
    return rotated(requisite, ((hash + index) >>> 0) % requisite.length);
  }
  if (question.strictTopology) return requisite;
  const first = requisite.findIndex((term) => isSubset(term, selected));
  if (first < 0) {
    throw new TopologyError(`node ${question.selectedNode} is in none of the topologies that may be used`);
  }
  return rotated(requisite, first);
}

function rotated<T>(items: readonly T[], by: number): readonly T[] {
  return [...items.slice(by), ...items.slice(0, by)];
}

/**
 * What spreads claims over topologies. Of `data-web-3` the name `web` of the StatefulSet is hashed and
 * the ordinal added, so that its claims go round, and `logs-web-3` lands where `data-web-3` does.
 */
export function pvcNameHash(pvcName: string): { readonly hash: number; readonly index: number } {
  const dash = pvcName.lastIndexOf("-");
  const ordinal = pvcName.slice(dash + 1);
  if (dash >= 0 && /^[0-9]+$/.test(ordinal) && BigInt(ordinal) <= 0xffffffffn) {
    const before = pvcName.slice(0, dash);
    return { hash: fnv1(before.slice(before.lastIndexOf("-") + 1)), index: Number(ordinal) };
  }
  return { hash: fnv1(pvcName), index: 0 };
}

/** FNV-1 (not 1a), 32 bit, over the bytes of UTF-8. */
function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = (Math.imul(hash, 0x01000193) ^ byte) >>> 0;
  return hash;
}

/** The terms that a class allows: of each entry, every way to choose one value an expression. */
function flatten(allowedTopologies: readonly TopologySelectorTerm[]): readonly Term[] {
  return allowedTopologies.flatMap(({ matchLabelExpressions = [] }) => {
    let terms: Term[] = [];
    for (const { key, values } of matchLabelExpressions) {
      const longer = (values ?? []).flatMap((value): Term[] =>
        terms.length === 0 ? [[[key, value]]] : terms.map((term) => [...term, [key, value]]),
      );
      terms = longer;
    }
    return terms.map((term) => [...term].sort(compareSegments));
  });
}

function termOf(labels: Segments, keys: readonly string[]): Term | undefined {
  const term: Segment[] = [];
  for (const key of keys) {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (value === undefined) return undefined;
    term.push([key, value]);
  }
  return term.sort(compareSegments);
}

const sortedTerm = (segments: Segments): Term => Object.entries(segments).sort(compareSegments);
const segmentsOf = (term: Term): Segments => Object.fromEntries(term);
const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const compareSegments = (a: Segment, b: Segment) => compareText(a[0], b[0]) || compareText(a[1], b[1]);

/** By length, then by key and value of the segments in turn. */
function compareTerms(a: Term, b: Term): number {
  if (a.length !== b.length) return a.length - b.length;
  for (let i = 0; i < a.length; i++) {
    const order = compareSegments(a[i] as Segment, b[i] as Segment);
    if (order !== 0) return order;
  }
  return 0;
}

function sortedUnique(terms: readonly Term[]): readonly Term[] {
  const sorted = [...terms].sort(compareTerms);
  return sorted.filter((term, i) => i === 0 || compareTerms(term, sorted[i - 1] as Term) !== 0);
}

/** Whether each segment of `part` is met in `whole`, in order: a key given twice is not met by one label. */
function isSubset(part: Term, whole: Term): boolean {
  let met = 0;
  for (const [key, value] of whole) {
    const wanted = part[met];
    if (wanted === undefined) return true;
    if (wanted[0] !== key) continue;
    if (wanted[1] !== value) return false;
    met++;
  }
  return met === part.length;
}
