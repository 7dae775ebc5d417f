/** Node selectors of pods and of a PersistentVolume's node affinity (k8s.io/component-helpers/scheduling/corev1/nodeaffinity). */
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from "kubernetes-types/core/v1.js";
import type { KubeObject } from "../kube-objects.ts";
import {
  LabelMatcher,
  type LabelOperator,
  type Labels,
  labelRequirement,
  SelectorError,
} from "./label-requirement.ts";

const labelOperatorOf: ReadonlyMap<string, LabelOperator> = new Map([
  ["In", "in"],
  ["NotIn", "notin"],
  ["Exists", "exists"],
  ["DoesNotExist", "!"],
  ["Gt", "gt"],
  ["Lt", "lt"],
]);

/**
 * True when the node matches one of the terms. No selector matches every node; a selector without
 * terms, and a term without conditions, match none.
 * @throws SelectorError when no term matches and one of them is not valid
 */
export function nodeSelectorMatches(
  node: KubeObject,
  nodeSelector: NodeSelector | undefined | null,
): boolean {
  if (nodeSelector === undefined || nodeSelector === null) return true;
  const labels = node.metadata?.labels ?? {};
  const name = node.metadata?.name ?? "";
  let mistake: unknown;
  for (const [index, term] of (nodeSelector.nodeSelectorTerms ?? []).entries()) {
    if (isEmptyTerm(term)) continue;
    try {
      if (termMatcher(term, `nodeSelectorTerms[${index}]`)(labels, name)) return true;
    } catch (error) {
      mistake ??= error;
    }
  }
  if (mistake !== undefined) throw mistake;
  return false;
}

function isEmptyTerm(term: NodeSelectorTerm): boolean {
  return (term.matchExpressions ?? []).length === 0 && (term.matchFields ?? []).length === 0;
}

/** Parses the whole term, so that a mistake is found for every node. */
function termMatcher(term: NodeSelectorTerm, where: string): (labels: Labels, name: string) => boolean {
  const labelMatcher = new LabelMatcher(
    (term.matchExpressions ?? []).map(({ key, operator, values }) => {
      const known = labelOperatorOf.get(operator);
      if (known === undefined) throw new SelectorError(`${where}: "${operator}" is not a valid operator`);
      return labelRequirement(key, known, values ?? []);
    }),
  );
  const fields = (term.matchFields ?? []).map((requirement) => fieldCondition(requirement, where));
  return (labels, name) =>
    // As in the reference: an object without a name has no fields to check.
    labelMatcher.matches(labels) && (name === "" || fields.every((matches) => matches(name)));
}

/** The only field of a node that can be selected is its name; any other is empty. */
function fieldCondition(
  { key, operator, values }: NodeSelectorRequirement,
  where: string,
): (name: string) => boolean {
  if (operator !== "In" && operator !== "NotIn") {
    throw new SelectorError(`${where}.matchFields: "${operator}" is not a valid operator`);
  }
  const value = values?.[0];
  if (value === undefined || values?.length !== 1) {
    throw new SelectorError(`${where}.matchFields: ${key} must have exactly one value`);
  }
  return (name) => ((key === "metadata.name" ? name : "") === value) === (operator === "In");
}
