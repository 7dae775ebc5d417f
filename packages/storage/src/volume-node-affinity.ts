/** Where a volume can be used, as a PV says it (docs/behaviour/sidecars.md 2.7). */
import type { VolumeNodeAffinity } from "@longshore/kube";

/** Labels that place something: topology keys and their values. */
export type Segments = Readonly<Record<string, string>>;

/**
 * The node affinity of a volume that is accessible from any of `topologies`; undefined when the driver says nothing.
 * Terms keep the driver's order, expressions are sorted by key, and a topology without segments is passed over.
 */
export function volumeNodeAffinity(topologies: readonly Segments[]): VolumeNodeAffinity | undefined {
  if (topologies.length === 0) return undefined;
  const terms = topologies
    .filter((segments) => Object.keys(segments).length > 0)
    .map((segments) => ({
      matchExpressions: Object.keys(segments)
        .sort()
        .map((key) => ({ key, operator: "In", values: [segments[key] as string] })),
    }));
  return { required: { nodeSelectorTerms: terms } };
}

/**
 * Whether a node with these labels can use the volume. A volume without affinity is usable everywhere, and so,
 * as in the reference, is every volume from a node of which nothing is known (`undefined`).
 */
export function volumeIsAccessible(
  affinity: VolumeNodeAffinity | undefined,
  nodeTopology: Segments | undefined,
): boolean {
  if (affinity?.required === undefined || nodeTopology === undefined) return true;
  return (affinity.required.nodeSelectorTerms ?? []).some((term) => {
    const expressions = term.matchExpressions ?? [];
    // In Kubernetes a term without expressions matches no node.
    return expressions.length > 0 && expressions.every((expression) => matches(expression, nodeTopology));
  });
}

function matches(
  {
    key,
    operator,
    values = [],
  }: { readonly key: string; readonly operator: string; readonly values?: readonly string[] },
  labels: Segments,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      // As with label selectors, a missing key satisfies NotIn.
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      if (value === undefined || values.length !== 1) return false;
      const [have, limit] = [Number(value), Number(values[0])];
      if (!Number.isInteger(have) || !Number.isInteger(limit)) return false;
      return operator === "Gt" ? have > limit : have < limit;
    }
    default:
      return false;
  }
}
