/**
 * A minimal scheduler: filters nodes, prefers the one with the fewest pods, lets delayed claims be
 * provisioned for the chosen node, then binds. Source: docs/behaviour/controllers.md B7.
 *
 * What is read is in `observe-cluster.ts`, the rules in `decide-scheduling-step.ts`, the writes in `scheduling-actions.ts`.
 *
 * Invariant: one pod at a time, and a pod counts on the node chosen for it from that moment on (`assumed-pods.ts`).
 */
import {
  ComponentScope,
  createEventRecorder,
  forResource,
  keyOf,
  type Node,
  resources,
  type Source,
  type Stored,
  startController,
  trackWrites,
  untilServed,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { WorkloadsEnv } from "../workloads/workloads-env.ts";
import { AssumedPods } from "./assumed-pods.ts";
import { decideSchedulingStep } from "./decide-scheduling-step.ts";
import { type ClusterSources, observeCluster } from "./observe-cluster.ts";
import {
  capacitiesCache,
  isUnscheduled,
  type SchedulerCaches,
  schedulerCaches,
  unscheduledPods,
  unscheduledPodsFor,
  unscheduledPodsOf,
} from "./scheduler-caches.ts";
import { schedulingActions } from "./scheduling-actions.ts";

/** Every claim of a pod takes a step; no node has room for that many. */
const stepsMax = 1000;

/** Options of {@link startScheduler}. */
export interface SchedulerOptions {
  /** Whether the scheduler's gates migrate the in-tree plugin. */
  readonly migrates: (inTreePluginName: string) => boolean;
}

/**
 * Starts the scheduler for pods without a node; it works in the background until it is stopped. A pod that fits nowhere
 * gets an event; it is looked at again every five seconds, and when something changes that may make room.
 */
export function startScheduler(given: WorkloadsEnv, options: SchedulerOptions): Component {
  const env = trackWrites(given, given.informers);
  const scope = new ComponentScope((error) => env.logger.error("scheduler task failed", { error }));
  const caches = { ...schedulerCaches(env.informers), capacities: followCapacities(env, scope) };
  const assumed = new AssumedPods();
  const events = createEventRecorder(env, { component: "default-scheduler" });
  const sources: ClusterSources = { caches, assumed, migrates: options.migrates };
  const controller = startController(env, {
    name: "scheduler",
    workers: 1,
    stepsMax,
    sources: sourcesOf(caches, assumed),
    caches: [caches.classes, caches.csiDrivers],
    observe(key) {
      const pod = caches.pods.get(key);
      const isBound = pod !== undefined && assumed.isBound(pod);
      return { pod, isBound, view: observeCluster(sources, key) };
    },
    decide: decideSchedulingStep,
    actions: schedulingActions({ kube: env.kube, events, assumed }),
  });
  scope.own(events, controller);
  return scope;
}

/** Where the API server has no CSIStorageCapacity objects, as before Kubernetes 1.21, no driver is asked for its room. */
function followCapacities(env: WorkloadsEnv, scope: ComponentScope): SchedulerCaches["capacities"] {
  let cache: ReturnType<typeof capacitiesCache> | undefined;
  scope.spawn(async (signal) => {
    if (!(await untilServed(env, resources.csiStorageCapacities, signal))) return;
    const started = capacitiesCache(env.informers);
    await started.synced(signal);
    cache = started;
  });
  return () => cache;
}

/** A pod is looked at when it changes, and when something changed that may make room for it. */
function sourcesOf(caches: SchedulerCaches, assumed: AssumedPods): readonly Source[] {
  const waiting = () => unscheduledPods(caches);
  return [
    // One with a node only while something is assumed for it, which is then forgotten.
    forResource(caches.pods, { selects: (pod) => isUnscheduled(pod) || assumed.has(keyOf(pod)) }),
    watches(caches.pods, () => [], { deleted: waiting }),
    watches(caches.nodes, waiting, { changed: isRelevantChange }),
    // A claim that goes frees an attachment slot; any other change of it concerns the pods that use it.
    watches(caches.claims, (claim) => unscheduledPodsOf(caches, claim), { deleted: waiting }),
    watches(caches.csiNodes, waiting),
    // A slot is free once nothing is attached any more, which may be long after its pod has gone.
    watches(caches.attachments, () => [], { deleted: waiting }),
    // A volume that comes free, or is made by hand for claims that wait.
    // A volume that comes free, or is made by hand, for claims that wait for one of its class.
    watches(caches.volumes, (volume) => unscheduledPodsFor(caches, volume), { deleted: () => [] }),
  ];
}

/** Heartbeats do not change where pods fit. */
function isRelevantChange(before: Stored<Node>, after: Stored<Node>): boolean {
  const facts = (node: Stored<Node>) =>
    JSON.stringify([
      node.spec?.unschedulable,
      node.spec?.taints,
      node.metadata.labels,
      node.status?.allocatable,
      node.status?.conditions?.find((c) => c.type === "Ready")?.status,
    ]);
  return facts(before) !== facts(after);
}
