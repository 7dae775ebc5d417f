/**
 * A minimal scheduler: filters nodes, prefers the one with the fewest pods, lets delayed claims be
 * provisioned for the chosen node, then binds. Source: docs/behaviour/controllers.md B7.
 *
 * What is read is in `observe-cluster.ts`, the rules in `decide-scheduling-step.ts`, the writes in `scheduling-actions.ts`.
 *
 * Invariant: one pod at a time, and a pod counts on the node chosen for it from that moment on (`assumed-pods.ts`).
 */
import {
  createEventRecorder,
  forResource,
  keyOf,
  type Node,
  type Source,
  type Stored,
  startController,
  trackWrites,
  watches,
} from "@longshore/kube";
import { type Component, stopAll } from "@longshore/runtime";
import type { WorkloadsEnv } from "../workloads/workloads-env.ts";
import { AssumedPods } from "./assumed-pods.ts";
import { decideSchedulingStep } from "./decide-scheduling-step.ts";
import { type ClusterSources, observeCluster } from "./observe-cluster.ts";
import {
  isUnscheduled,
  type SchedulerCaches,
  schedulerCaches,
  unscheduledPods,
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
  const caches = schedulerCaches(env.informers);
  const assumed = new AssumedPods();
  const events = createEventRecorder(env, { component: "default-scheduler" });
  const sources: ClusterSources = { caches, assumed, migrates: options.migrates };
  const controller = startController(env, {
    name: "scheduler",
    workers: 1,
    stepsMax,
    sources: sourcesOf(caches, assumed),
    caches: [caches.volumes, caches.classes],
    observe(key) {
      const pod = caches.pods.get(key);
      const isBound = pod !== undefined && assumed.isBound(pod);
      return { pod, isBound, view: observeCluster(sources, key) };
    },
    decide: decideSchedulingStep,
    actions: schedulingActions({ kube: env.kube, events, assumed }),
  });
  return { stop: () => stopAll([events, controller]) };
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
