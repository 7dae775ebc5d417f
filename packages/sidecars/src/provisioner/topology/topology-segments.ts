/** The segments of a driver's topology, from node labels (docs/behaviour/sidecars.md 2.9). Pure. */
import type { CSINode, Node, Stored } from "@longshore/kube";
import { type Segments, topologyKeysOf } from "@longshore/storage";

/** What makes up one segment, in an order and form that is the same for equal ones. */
export function segmentKey(segments: Segments): string {
  const sorted = Object.keys(segments).sort();
  return JSON.stringify(sorted.map((key) => [key, segments[key]]));
}

/**
 * The distinct segments of all nodes where the driver runs: of each its labels for the keys that its CSINode names. A
 * node without keys, or without the label of one, is left out.
 */
export function topologySegments(
  driverName: string,
  csiNodes: readonly CSINode[],
  nodes: readonly Node[],
): readonly Segments[] {
  const labelsOf = new Map(nodes.map(({ metadata }) => [metadata?.name, metadata?.labels ?? {}]));
  const found = new Map<string, Segments>();
  for (const csiNode of csiNodes) {
    const keys = topologyKeysOf(csiNode, driverName);
    const labels = labelsOf.get(csiNode.metadata?.name);
    if (keys.length === 0 || labels === undefined) continue;
    const segments = segmentsOf(labels, keys);
    if (segments !== undefined) found.set(segmentKey(segments), segments);
  }
  return [...found.values()];
}

/** The distinct segments of all nodes that have a label for each of the keys. */
export function distinctSegments(nodes: readonly Node[], keys: readonly string[]): readonly Segments[] {
  const found = new Map<string, Segments>();
  for (const { metadata } of nodes) {
    const segments = segmentsOf(metadata?.labels ?? {}, keys);
    if (segments !== undefined) found.set(segmentKey(segments), segments);
  }
  return [...found.values()];
}

function segmentsOf(labels: Segments, keys: readonly string[]): Segments | undefined {
  const segments: Record<string, string> = {};
  for (const key of keys) {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (value === undefined) return undefined;
    segments[key] = value;
  }
  return segments;
}

/** A node's status changes all the time, its labels seldom. */
export function sameLabels(a: Stored<Node>, b: Stored<Node>): boolean {
  const [before, after] = [a.metadata.labels ?? {}, b.metadata.labels ?? {}];
  const keys = Object.keys(before);
  return keys.length === Object.keys(after).length && keys.every((key) => before[key] === after[key]);
}
