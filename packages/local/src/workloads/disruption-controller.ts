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
  trackWrites,
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

/** An evicted pod that is not seen being deleted after this time was not evicted after all. */
const evictionSeenWithinMs = 2 * 60_000;

/**
 * Pods that the evicting side has let go and whose deletion is yet to be seen. They count as gone: the
 * cache may lag behind the eviction, which would allow the same disruption twice.
 */
export function pendingEvictions(
  budget: PodDisruptionBudget,
  pods: readonly Stored<Pod>[],
  now: Date,
  /** When a pod of that name was last seen to go, in milliseconds since 1970. */
  lastGoneMs: (podName: string) => number | undefined = () => undefined,
): Readonly<Record<string, string>> {
  const isPending = ([name, at]: [string, string]) =>
    now.getTime() - Date.parse(at) < evictionSeenWithinMs &&
    (lastGoneMs(name) ?? 0) < Date.parse(at) &&
    pods.some((pod) => pod.metadata.name === name && !isDeleting(pod) && !isMadeAfter(pod, at));
  return Object.fromEntries(Object.entries(budget.status?.disruptedPods ?? {}).filter(isPending));
}

/** A later pod of the same name is not the evicted one. Times have no fractions of a second. */
function isMadeAfter(pod: Stored<Pod>, at: string): boolean {
  return Date.parse(pod.metadata.creationTimestamp ?? "") > Date.parse(at);
}

/** Computes a budget's counts from the pods it selects, the sets that own them and evictions not yet seen. */
export function decideDisruptionStatus(
  budget: PodDisruptionBudget,
  pods: readonly Stored<Pod>[],
  sets: readonly Stored<StatefulSet>[],
  evicted: Readonly<Record<string, string>> = {},
): DisruptionStatus {
  const owners = new Set(pods.flatMap((pod) => pod.metadata.ownerReferences?.map((o) => o.uid) ?? []));
  const owned = sets.filter((set) => owners.has(set.metadata.uid));
  const unowned = pods.filter((pod) => !owned.some((set) => isOwnedBy(pod, set)));
  const expectedPods = owned.reduce((sum, set) => sum + (set.spec?.replicas ?? 1), 0) + unowned.length;
  const currentHealthy = pods.filter(
    (pod) => isPodReady(pod) && !isDeleting(pod) && evicted[pod.metadata.name] === undefined,
  ).length;
  const desiredHealthy =
    budget.spec?.maxUnavailable === undefined
      ? scaled(budget.spec?.minAvailable ?? 0, expectedPods)
      : Math.max(0, expectedPods - scaled(budget.spec.maxUnavailable, expectedPods));
  const disruptionsAllowed = expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return { expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed };
}

/** Starts the disruption controller; it does nothing where budgets are not served. */
export function startDisruptionController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
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
      const gone = (name: string) => goneMs.get(`${budget.metadata.namespace}/${name}`);
      const evicted = pendingEvictions(budget, selected, env.clock.now(), gone);
      const counts = decideDisruptionStatus(budget, selected, sets.list(), evicted);
      await writeStatus(env, budget, counts, evicted, signal);
      return Object.keys(evicted).length === 0 ? settled : { requeueAfterMs: evictionSeenWithinMs };
    },
  });
  /** Pods seen to go, by key: the next pod of a StatefulSet has the evicted one's name. */
  const goneMs = new Map<string, number>();
  const noteGone = (pod: Stored<Pod>) => {
    const nowMs = env.clock.now().getTime();
    for (const [key, ms] of goneMs) if (nowMs - ms >= evictionSeenWithinMs) goneMs.delete(key);
    goneMs.set(keyOf(pod), nowMs);
  };
  const wakeAll = () => {
    for (const budget of budgets.list()) queue.add(keyOf(budget));
  };
  const unsubscribe = [
    budgets.onChange({ added: (b) => queue.add(keyOf(b)), updated: (_, b) => queue.add(keyOf(b)) }),
    pods.onChange({
      added: wakeAll,
      updated: (before, pod) => {
        if (isDeleting(pod)) noteGone(pod);
        else if (before.metadata.uid !== pod.metadata.uid) noteGone(before);
        wakeAll();
      },
      deleted: (pod) => {
        noteGone(pod);
        wakeAll();
      },
    }),
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
  evicted: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const generation = budget.metadata.generation ?? 1;
  const was = budget.status;
  const seen = Object.keys(was?.disruptedPods ?? {}).filter((name) => evicted[name] === undefined);
  const same =
    was !== undefined &&
    seen.length === 0 &&
    was.observedGeneration === generation &&
    (Object.keys(counts) as (keyof DisruptionStatus)[]).every((key) => (was[key] ?? 0) === counts[key]);
  if (same) return;
  // The evicting side uses up disruptions and writes evicted pods to disruptedPods. Counts made
  // before an eviction must not be written after it: the write requires the version that was read.
  const disruptedPods = Object.fromEntries(seen.map((name) => [name, null]));
  const body = {
    metadata: { resourceVersion: budget.metadata.resourceVersion },
    status: {
      ...counts,
      ...(seen.length === 0 ? {} : { disruptedPods }),
      observedGeneration: generation,
    },
  };
  await env.kube.patch(
    resources.podDisruptionBudgets,
    refOfKey(keyOf(budget)),
    { type: "merge", body },
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
