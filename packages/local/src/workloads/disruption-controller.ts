/**
 * Keeps `status.disruptionsAllowed` of PodDisruptionBudgets up to date, which is what the eviction
 * sub-resource asks. The rules are in `decide-disruption-step.ts`.
 */
import {
  type Actions,
  controllerScope,
  forResource,
  type Informer,
  isPodTerminal,
  type KubeClient,
  type KubeObject,
  keyOf,
  labelSelectorMatches,
  type ObjectKey,
  type Pod,
  type PodDisruptionBudget,
  refOf,
  resources,
  type StatefulSet,
  type Stored,
  settled,
  startController,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { ownersOf } from "./decide-disruption-status.ts";
import { type DisruptionStep, decideDisruptionStep, type ObservedBudget } from "./decide-disruption-step.ts";
import { GonePods } from "./gone-pods.ts";
import { evictionSeenWithinMs } from "./pending-evictions.ts";
import type { WorkloadsEnv } from "./workloads-env.ts";

/** Name of the index of all three caches by namespace. */
const namespaceIndex = "disruption/namespace";
const indexes = { [namespaceIndex]: ({ metadata }: Stored<KubeObject>) => [metadata.namespace ?? ""] };

interface DisruptionCaches {
  readonly budgets: Informer<PodDisruptionBudget>;
  readonly pods: Informer<Pod>;
  readonly sets: Informer<StatefulSet>;
}

/** Starts the disruption controller; it does nothing where budgets are not served. */
export function startDisruptionController(given: WorkloadsEnv): Component {
  const { scope, env } = controllerScope(given, "disruption controller");
  const budgets = env.informers.of(resources.podDisruptionBudgets, { indexes });
  const pods = env.informers.of(resources.pods, { indexes });
  const sets = env.informers.of(resources.statefulSets, { indexes });
  const gone = new GonePods(env.clock);
  scope.onStop(gone.follow(pods));
  const controller = startController<ObservedBudget, DisruptionStep>(env, {
    name: "disruption",
    sources: [
      forResource(budgets, { deleted: "forget" }),
      watches(pods, (pod) => budgetsThatSelect(budgets, pod)),
      watches(sets, (set) => inNamespaceOf(budgets, set).map(keyOf)),
    ],
    observe: (key) => observeBudget({ budgets, pods, sets }, gone, key, env.clock.now()),
    decide: decideDisruptionStep,
    actions: disruptionActions(env.kube),
  });
  scope.own(controller);
  return scope;
}

function observeBudget(
  { budgets, pods, sets }: DisruptionCaches,
  gone: GonePods,
  key: ObjectKey,
  now: Date,
): ObservedBudget | undefined {
  const budget = budgets.get(key);
  if (budget === undefined) return undefined;
  const selected = inNamespaceOf(pods, budget).filter(
    (pod) => !isPodTerminal(pod) && isSelected(budget, pod),
  );
  const owners = new Set(selected.flatMap(ownersOf));
  const goneMs = new Map<string, number>();
  for (const name of Object.keys(budget.status?.disruptedPods ?? {})) {
    const ms = gone.lastGoneMs(`${budget.metadata.namespace}/${name}`);
    if (ms !== undefined) goneMs.set(name, ms);
  }
  return {
    budget,
    pods: selected,
    sets: inNamespaceOf(sets, budget).filter(({ metadata }) => owners.has(metadata.uid)),
    goneMs,
    now,
    isWritten: false,
  };
}

function disruptionActions(kube: KubeClient): Actions<ObservedBudget, DisruptionStep> {
  return {
    async writeStatus({ status }, observed, { signal }) {
      // The evicting side uses up disruptions and writes evicted pods to disruptedPods. Counts made
      // before an eviction must not be written after it: the write requires the version that was read.
      const { resourceVersion } = observed.budget.metadata;
      const patch = { type: "merge", body: { metadata: { resourceVersion }, status } } as const;
      const options = { subresource: "status", signal } as const;
      await kube.patch(resources.podDisruptionBudgets, refOf(observed.budget), patch, options);
      return { observed: { ...observed, isWritten: true } };
    },
    waitForEvictions: () => ({ requeueAfterMs: evictionSeenWithinMs }),
    settle: () => settled,
  };
}

/** Keys of the budgets that count the pod, also once it has ended. */
function budgetsThatSelect(budgets: Informer<PodDisruptionBudget>, pod: Stored<Pod>): readonly ObjectKey[] {
  return inNamespaceOf(budgets, pod)
    .filter((budget) => isSelected(budget, pod))
    .map(keyOf);
}

function inNamespaceOf<T extends KubeObject>(
  cache: Informer<T>,
  { metadata }: Stored<KubeObject>,
): readonly Stored<T>[] {
  return cache.byIndex(namespaceIndex, metadata.namespace ?? "");
}

function isSelected(budget: PodDisruptionBudget, pod: Pod): boolean {
  return labelSelectorMatches(budget.spec?.selector, pod.metadata?.labels ?? {});
}
