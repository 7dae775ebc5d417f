/**
 * Keeps `status.disruptionsAllowed` of PodDisruptionBudgets up to date, which is what the eviction
 * sub-resource asks. Source: policy PodDisruptionBudget (minAvailable and maxUnavailable, counts
 * and percentages; expected pods are those of the owning StatefulSets, else the pods there are).
 */
import {
  isDeleting,
  keyOf,
  labelSelectorMatches,
  type Pod,
  type PodDisruptionBudget,
  refOfKey,
  resources,
  type StatefulSet,
  type Stored,
  settled,
  startWorkQueue,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { WorkloadsEnv } from "./stateful-set-controller.ts";
import { isPodReady } from "./stateful-set-step.ts";

/** The counts of a budget's status. */
export interface DisruptionStatus {
  readonly expectedPods: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly disruptionsAllowed: number;
}

/** Computes a budget's counts from the pods it selects and the sets that own them. */
export function decideDisruptionStatus(
  budget: PodDisruptionBudget,
  pods: readonly Stored<Pod>[],
  sets: readonly Stored<StatefulSet>[],
): DisruptionStatus {
  const owners = new Set(pods.flatMap((pod) => pod.metadata.ownerReferences?.map((o) => o.uid) ?? []));
  const owned = sets.filter((set) => owners.has(set.metadata.uid));
  const unowned = pods.filter((pod) => !owned.some((set) => isOwnedBy(pod, set)));
  const expectedPods = owned.reduce((sum, set) => sum + (set.spec?.replicas ?? 1), 0) + unowned.length;
  const currentHealthy = pods.filter((pod) => isPodReady(pod) && !isDeleting(pod)).length;
  const desiredHealthy =
    budget.spec?.maxUnavailable === undefined
      ? scaled(budget.spec?.minAvailable ?? 0, expectedPods)
      : Math.max(0, expectedPods - scaled(budget.spec.maxUnavailable, expectedPods));
  const disruptionsAllowed = expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return { expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed };
}

/** Starts the disruption controller; it does nothing where budgets are not served. */
export function startDisruptionController(env: WorkloadsEnv): Component {
  const budgets = env.informers.of(resources.podDisruptionBudgets);
  const pods = env.informers.of(resources.pods);
  const sets = env.informers.of(resources.statefulSets);
  const queue = startWorkQueue(env, {
    name: "disruption",
    reconcile: async (key, signal) => {
      await Promise.all([budgets.synced(signal), pods.synced(signal), sets.synced(signal)]);
      const budget = budgets.get(key);
      if (budget === undefined || isDeleting(budget)) return settled;
      const selected = pods.list().filter((pod) => isSelected(budget, pod));
      await writeStatus(env, budget, decideDisruptionStatus(budget, selected, sets.list()), signal);
      return settled;
    },
  });
  const wakeAll = () => {
    for (const budget of budgets.list()) queue.add(keyOf(budget));
  };
  const unsubscribe = [
    budgets.onChange({ added: (b) => queue.add(keyOf(b)), updated: (_, b) => queue.add(keyOf(b)) }),
    pods.onChange({ added: wakeAll, updated: wakeAll, deleted: wakeAll }),
    sets.onChange({ added: wakeAll, updated: wakeAll, deleted: wakeAll }),
  ];
  return {
    async stop() {
      for (const end of unsubscribe) end();
      await queue.stop();
    },
  };
}

async function writeStatus(
  env: WorkloadsEnv,
  budget: Stored<PodDisruptionBudget>,
  counts: DisruptionStatus,
  signal: AbortSignal,
): Promise<void> {
  const generation = budget.metadata.generation ?? 1;
  const was = budget.status;
  const same =
    was !== undefined &&
    was.observedGeneration === generation &&
    (Object.keys(counts) as (keyof DisruptionStatus)[]).every((key) => (was[key] ?? 0) === counts[key]);
  if (same) return;
  // The evicting side notes pods it has let go in disruptedPods; a full replacement would forget them.
  await env.kube.patch(
    resources.podDisruptionBudgets,
    refOfKey(keyOf(budget)),
    { type: "merge", body: { status: { ...counts, observedGeneration: generation } } },
    { subresource: "status", signal },
  );
}

function isSelected(budget: Stored<PodDisruptionBudget>, pod: Stored<Pod>): boolean {
  return (
    pod.metadata.namespace === budget.metadata.namespace &&
    pod.status?.phase !== "Succeeded" &&
    pod.status?.phase !== "Failed" &&
    labelSelectorMatches(budget.spec?.selector, pod.metadata.labels ?? {})
  );
}

function isOwnedBy(pod: Stored<Pod>, set: Stored<StatefulSet>): boolean {
  return pod.metadata.ownerReferences?.some((o) => o.uid === set.metadata.uid) === true;
}

/** A count, or a percentage of `total` rounded up. */
function scaled(value: number | string, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  return percent === undefined ? Number(value) : Math.ceil((Number(percent) / 100) * total);
}
