/** Runs ReplicaSets: keeps as many pods as `plan-replica-set.ts` wants. */
import { forResource, isNotFound, refOf, resources, startController, trackWrites } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  controlledBy,
  orphansIn,
  ownerIndexes,
  ownershipIndexes,
  ownsOrMayAdopt,
} from "../pod-sets/controlled-objects.ts";
import { podSetActions } from "../pod-sets/pod-set-steps.ts";
import type { WorkloadsEnv } from "../workloads-env.ts";
import {
  decideReplicaSetStep,
  type ObservedReplicaSet,
  ownerOfReplicaSet,
  type ReplicaSetStep,
} from "./plan-replica-set.ts";

/** Starts the controller on the shared caches, five sets at a time; it works in the background until it is stopped. */
export function startReplicaSetController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const { clock, kube } = env;
  const sets = env.informers.of(resources.replicaSets, { indexes: ownerIndexes });
  const pods = env.informers.of(resources.pods, { indexes: ownershipIndexes });
  return startController<ObservedReplicaSet, ReplicaSetStep>(env, {
    name: "replicaset",
    workers: 5,
    // Each step goes one further in a plan, which has an end.
    stepsMax: Number.POSITIVE_INFINITY,
    sources: [forResource(sets, { deleted: "forget" }), ownsOrMayAdopt(pods, sets, ownerOfReplicaSet)],
    observe(key) {
      const set = sets.get(key);
      if (set === undefined) return undefined;
      return {
        set,
        pods: controlledBy(pods, set.metadata.uid),
        orphans: orphansIn(pods, set.metadata.namespace ?? "default"),
        now: clock.now(),
        done: 0,
      };
    },
    decide: decideReplicaSetStep,
    actions: {
      ...podSetActions<ObservedReplicaSet>(kube),
      async reportStatus({ status, nextMs }, { set }, { signal }) {
        const patch = { type: "merge", body: { status } } as const;
        await kube
          .patch(resources.replicaSets, refOf(set), patch, { subresource: "status", signal })
          .catch((error) => {
            if (!isNotFound(error)) throw error;
          });
        return nextMs === undefined ? {} : { requeueAfterMs: nextMs };
      },
      settle: ({ nextMs }) => (nextMs === undefined ? {} : { requeueAfterMs: nextMs }),
    },
  });
}
