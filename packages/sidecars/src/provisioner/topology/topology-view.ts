/**
 * The topology of the cluster, gathered once and not for each claim: what it is stays until nodes or CSINodes change.
 * Only saves work: `accessibilityRequirements` returns the same without it.
 */
import type { CSINode, Informer, Node } from "@longshore/kube";
import { type Segments, type TopologyMemory, topologyKeysOf } from "@longshore/storage";
import { distinctSegments, sameLabels } from "./topology-segments.ts";

/** Answers for one driver. */
export interface TopologyView {
  /**
   * What an attempt for a claim would see now; undefined where something is missing, so that the caller finds out what.
   * @param selectedNode undefined with immediate binding
   */
  now(selectedNode: string | undefined): TopologyMemory | undefined;
}

type Source<T extends CSINode | Node> = Pick<Informer<T>, "get" | "list" | "onChange">;

/** Begins to follow the caches; `end` ends that. */
export function topologyView(
  driverName: string,
  csiNodes: Source<CSINode>,
  nodes: Source<Node>,
): TopologyView & { readonly end: () => void } {
  /** By the keys, in their order. */
  const segmentsByKeys = new Map<string, readonly Segments[]>();
  let someKeys: readonly string[] | undefined;
  const ends = [
    nodes.onChange({
      added: () => segmentsByKeys.clear(),
      updated: (before, after) => {
        if (!sameLabels(before, after)) segmentsByKeys.clear();
      },
      deleted: () => segmentsByKeys.clear(),
    }),
    csiNodes.onChange({
      added: () => {
        someKeys = undefined;
      },
      updated: () => {
        someKeys = undefined;
      },
      deleted: () => {
        someKeys = undefined;
      },
    }),
  ];
  const segmentsOf = (keys: readonly string[]): readonly Segments[] => {
    const id = JSON.stringify(keys);
    let segments = segmentsByKeys.get(id);
    if (segments === undefined) {
      segments = distinctSegments(nodes.list(), keys);
      segmentsByKeys.set(id, segments);
    }
    return segments;
  };
  /** For immediate binding: those of the first CSINode that has some. */
  const anyKeys = (): readonly string[] => {
    someKeys ??= csiNodes
      .list()
      .map((csiNode) => topologyKeysOf(csiNode, driverName))
      .find((keys) => keys.length > 0);
    return someKeys ?? [];
  };
  return {
    now(selectedNode) {
      const topologyKeys =
        selectedNode === undefined ? anyKeys() : topologyKeysOf(csiNodes.get(selectedNode), driverName);
      if (topologyKeys.length === 0) return undefined;
      const requisiteTerms = segmentsOf(topologyKeys);
      if (requisiteTerms.length === 0) return undefined;
      if (selectedNode === undefined) return { topologyKeys, requisiteTerms };
      const node = nodes.get(selectedNode);
      if (node === undefined) return undefined;
      return { topologyKeys, requisiteTerms, nodeLabels: node.metadata.labels ?? {} };
    },
    end: () => {
      for (const end of ends) end();
    },
  };
}
