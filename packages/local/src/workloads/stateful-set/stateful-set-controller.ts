/**
 * Runs StatefulSets: keeps their pods and claims as `plan-stateful-set.ts` wants them. The rules are in
 * `decide-stateful-set-step.ts`, the writes in `stateful-set-actions.ts`.
 */
import { forResource, resources, startController, trackWrites } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  controlledBy,
  orphansIn,
  ownerIndexes,
  ownershipIndexes,
  ownsOrMayAdopt,
} from "../pod-sets/controlled-objects.ts";
import type { WorkloadsEnv } from "../workloads-env.ts";
import { decideStatefulSetStep, noProgress, ownerOfStatefulSet } from "./decide-stateful-set-step.ts";
import { statefulSetActions } from "./stateful-set-actions.ts";

/**
 * Starts the StatefulSet controller on the shared caches, two sets at a time; it works in the background until it is
 * stopped. A pass walks its plan to the end; a write that fails is retried from a fresh observation.
 */
export function startStatefulSetController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const sets = env.informers.of(resources.statefulSets, { indexes: ownerIndexes });
  const pods = env.informers.of(resources.pods, { indexes: ownershipIndexes });
  const revisions = env.informers.of(resources.controllerRevisions, { indexes: ownershipIndexes });
  return startController(env, {
    name: "statefulset",
    workers: 2,
    // Each step goes one further in a plan, which has an end.
    stepsMax: Number.POSITIVE_INFINITY,
    sources: [
      forResource(sets, { deleted: "forget" }),
      ownsOrMayAdopt(pods, sets, ownerOfStatefulSet),
      ownsOrMayAdopt(revisions, sets, ownerOfStatefulSet),
    ],
    observe(key) {
      const set = sets.get(key);
      if (set === undefined) return undefined;
      const { uid, namespace = "default" } = set.metadata;
      return {
        set,
        pods: controlledBy(pods, uid),
        orphans: orphansIn(pods, namespace),
        revisions: controlledBy(revisions, uid),
        orphanRevisions: orphansIn(revisions, namespace),
        now: env.clock.now(),
        progress: noProgress,
      };
    },
    decide: decideStatefulSetStep,
    actions: statefulSetActions(env.kube),
  });
}
