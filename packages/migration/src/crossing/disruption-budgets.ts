/**
 * Which PodDisruptionBudgets hold a pod back, by the rules of the eviction sub-resource. Pure.
 * Source: policy Eviction and PodDisruptionBudget (unhealthyPodEvictionPolicy); core/pod/storage EvictionREST.
 */
import { labelSelectorMatches, type Pod, type PodDisruptionBudget, type Stored } from "@longshore/kube";

/** Why a budget lets nothing go. */
export interface BudgetHold {
  readonly budget: Stored<PodDisruptionBudget>;
  /** `stale`: not looked at since it was changed; `never`: its spec lets no pod go; `now`: too few pods are healthy. */
  readonly kind: "stale" | "never" | "now";
  /** The field that shows it. */
  readonly field: string;
  readonly reason: string;
}

/** The budgets that cover the pod. */
export function budgetsOf(
  pod: Stored<Pod>,
  budgets: readonly Stored<PodDisruptionBudget>[],
): Stored<PodDisruptionBudget>[] {
  return budgets.filter(
    (budget) =>
      (budget.metadata.namespace ?? "default") === (pod.metadata.namespace ?? "default") &&
      labelSelectorMatches(budget.spec?.selector, pod.metadata.labels ?? {}),
  );
}

/** True when an eviction of the pod asks no budget: it does not run, or goes already. */
export function needsNoBudget(pod: Pod): boolean {
  const phase = pod.status?.phase ?? "Pending";
  return phase !== "Running" || pod.metadata?.deletionTimestamp !== undefined;
}

/** Why the budget lets no pod go, or undefined when it does. */
export function holdOf(budget: Stored<PodDisruptionBudget>): BudgetHold | undefined {
  const { status } = budget;
  const generation = budget.metadata.generation ?? 0;
  const observed = status?.observedGeneration ?? 0;
  if (status === undefined || observed < generation) {
    const reason = `its status is stale: observedGeneration ${observed}, generation ${generation}`;
    return { budget, kind: "stale", field: "status.observedGeneration", reason };
  }
  if ((status.disruptionsAllowed ?? 0) > 0) return undefined;
  const { currentHealthy = 0, desiredHealthy = 0, expectedPods = 0 } = status;
  const kind = expectedPods > 0 && desiredHealthy >= expectedPods ? "never" : "now";
  const reason = `it allows no disruption: ${desiredHealthy} of ${expectedPods} pods must be healthy, ${currentHealthy} ${currentHealthy === 1 ? "is" : "are"}`;
  return { budget, kind, field: "status.disruptionsAllowed", reason };
}

/** True when the budget lets a pod that is not ready go although it allows no disruption. */
export function letsUnreadyGo(budget: PodDisruptionBudget): boolean {
  if (budget.spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  // IfHealthyBudget, the default: a pod that is not ready may go while the others alone satisfy the budget.
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}
