/** Preflight of PodDisruptionBudgets: those that would hold a drain back. Pure. */
import type { Pod, PodDisruptionBudget, Stored } from "@longshore/kube";
import { type BudgetHold, budgetsOf, holdOf, letsUnreadyGo, needsNoBudget } from "./disruption-budgets.ts";
import type { Finding, PreflightView } from "./finding.ts";
import { isReady, leftByDrain, nameOf } from "./pod-facts.ts";

/** Problems of the budgets that keep pods from being moved. */
export function budgetFindings({ seen, toCross }: PreflightView): Finding[] {
  const findings: Finding[] = [];
  const held = new Map<Stored<PodDisruptionBudget>, Stored<Pod>[]>();
  const byNamespace = new Map<string, Stored<PodDisruptionBudget>[]>();
  for (const budget of seen.budgets) listIn(byNamespace, budget.metadata.namespace ?? "default").push(budget);
  for (const pod of seen.pods) {
    if (!toCross.has(pod.spec?.nodeName ?? "") || leftByDrain(pod) !== undefined) continue;
    if (needsNoBudget(pod)) continue;
    const covering = budgetsOf(pod, byNamespace.get(pod.metadata.namespace ?? "default") ?? []);
    const [budget] = covering;
    if (covering.length > 1) findings.push(coveredTwice(pod, covering));
    else if (budget !== undefined && (isReady(pod) || !letsUnreadyGo(budget))) listIn(held, budget).push(pod);
  }
  for (const [budget, pods] of held) {
    const hold = holdOf(budget);
    if (hold !== undefined) findings.push(heldBack(hold, pods));
  }
  return findings;
}

function listIn<K, V>(lists: Map<K, V[]>, key: K): V[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function coveredTwice(pod: Stored<Pod>, budgets: readonly Stored<PodDisruptionBudget>[]): Finding {
  const names = budgets.map(({ metadata }) => `${metadata.namespace ?? "default"}/${metadata.name}`);
  return {
    severity: "blocker",
    object: `Pod ${nameOf(pod)}`,
    field: "metadata.labels",
    reason: `more than one PodDisruptionBudget covers it (${names.join(", ")}), and the server evicts no such pod`,
    remedy: "change the selectors so that one budget covers it",
  };
}

const remedies: Readonly<Record<BudgetHold["kind"], string>> = {
  stale: "see whether the disruption controller runs",
  never:
    "allow a disruption (spec.maxUnavailable, spec.minAvailable) or add replicas, for the time of the crossing",
  now: "wait until more of its pods are ready; a drain waits for that",
};

function heldBack({ budget, kind, field, reason }: BudgetHold, pods: readonly Stored<Pod>[]): Finding {
  const [first] = pods.map(nameOf);
  const covers = pods.length === 1 ? `Pod ${first}` : `Pod ${first} and ${pods.length - 1} more`;
  return {
    severity: kind === "never" ? "blocker" : "warning",
    object: `PodDisruptionBudget ${budget.metadata.namespace ?? "default"}/${budget.metadata.name}`,
    field,
    reason: `${reason}, and it covers ${covers}, to be moved`,
    remedy: remedies[kind],
  };
}
