/** PodDisruptionBudget (kubernetes pkg/apis/policy/validation, pkg/registry/policy/poddisruptionbudget). */
import type { KubeObject } from "@longshore/kube";
import { type FieldProblem, invalidValue, unsupportedValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { labelSelectorProblems } from "./label-selector-problems.ts";
import type { Loose, LooseObject } from "./shaping.ts";

const percentRule =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** A count of pods, or a share of them. */
function amountProblems(value: unknown, at: string): FieldProblem[] {
  if (value === undefined) return [];
  if (typeof value === "string") {
    if (!/^[0-9]+%$/.test(value)) return [invalidValue(at, value, percentRule)];
    return Number.parseInt(value, 10) > 100 ? [invalidValue(at, value, "must not be greater than 100%")] : [];
  }
  return Number(value) < 0 ? [invalidValue(at, value, "must be greater than or equal to 0")] : [];
}

const unhealthyPolicies = ["AlwaysAllow", "IfHealthyBudget"];

function validate(object: KubeObject): FieldProblem[] {
  const { spec = {} } = object as LooseObject;
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: unhealthy } = spec as Loose;
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    return [invalidValue("spec", spec, "minAvailable and maxUnavailable cannot be both set")];
  }
  const problems = amountProblems(minAvailable, "spec.minAvailable");
  problems.push(...amountProblems(maxUnavailable, "spec.maxUnavailable"));
  problems.push(...labelSelectorProblems(selector, "spec.selector"));
  if (unhealthy !== undefined && !unhealthyPolicies.includes(unhealthy)) {
    problems.push(unsupportedValue("spec.unhealthyPodEvictionPolicy", unhealthy, unhealthyPolicies));
  }
  return problems;
}

/**
 * PodDisruptionBudget. Kubernetes 1.20 serves policy/v1beta1 only, 1.25 and later policy/v1 only.
 */
export const podDisruptionBudget: Kind = {
  group: "policy",
  versions: ["v1", "v1beta1"],
  kind: "PodDisruptionBudget",
  plural: "poddisruptionbudgets",
  shortNames: ["pdb"],
  namespaced: true,
  statusSubresource: true,
  countsGenerations: true,
  updateNeedsVersion: true,
  anyFinalizers: true,
  prepareCreate: (o) =>
    ({
      ...o,
      status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 },
    }) as KubeObject,
  validate,
};
