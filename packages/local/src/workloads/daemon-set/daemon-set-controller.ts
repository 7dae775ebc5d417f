/** Runs DaemonSets: keeps a pod on each node that `decide-daemon-set-step.ts` selects. */
import {
  forResource,
  isNotFound,
  keyOf,
  type Node,
  refOf,
  resources,
  type Source,
  type Stored,
  startController,
  trackWrites,
  watches,
} from "@longshore/kube";
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
  type DaemonSetStep,
  decideDaemonSetStep,
  type ObservedDaemonSet,
  ownerOfDaemonSet,
} from "./decide-daemon-set-step.ts";

/** Starts the controller on the shared caches, two sets at a time; it works in the background until it is stopped. */
export function startDaemonSetController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const { clock, kube } = env;
  const sets = env.informers.of(resources.daemonSets, { indexes: ownerIndexes });
  const pods = env.informers.of(resources.pods, { indexes: ownershipIndexes });
  const nodes = env.informers.of(resources.nodes);
  // Labels and taints of a node concern every set; its heartbeats none.
  const everySet: Source = watches(nodes, () => sets.list().map(keyOf), { changed: hasNewPlace });
  return startController<ObservedDaemonSet, DaemonSetStep>(env, {
    name: "daemonset",
    workers: 2,
    // Each step goes one further in a plan, which has an end.
    stepsMax: Number.POSITIVE_INFINITY,
    sources: [
      forResource(sets, { deleted: "forget" }),
      ownsOrMayAdopt(pods, sets, ownerOfDaemonSet),
      everySet,
    ],
    observe(key) {
      const set = sets.get(key);
      if (set === undefined) return undefined;
      return {
        set,
        pods: controlledBy(pods, set.metadata.uid),
        orphans: orphansIn(pods, set.metadata.namespace ?? "default"),
        nodes: nodes.list(),
        now: clock.now(),
        done: 0,
      };
    },
    decide: decideDaemonSetStep,
    actions: {
      ...podSetActions<ObservedDaemonSet>(kube),
      async reportStatus({ status, nextMs }, { set }, { signal }) {
        const patch = { type: "merge", body: { status } } as const;
        await kube
          .patch(resources.daemonSets, refOf(set), patch, { subresource: "status", signal })
          .catch((error) => {
            if (!isNotFound(error)) throw error;
          });
        return nextMs === undefined ? {} : { requeueAfterMs: nextMs };
      },
      settle: ({ nextMs }) => (nextMs === undefined ? {} : { requeueAfterMs: nextMs }),
    },
  });
}

function hasNewPlace(before: Stored<Node>, after: Stored<Node>): boolean {
  const place = ({ metadata, spec }: Stored<Node>) =>
    JSON.stringify([metadata.labels, spec?.taints, spec?.unschedulable]);
  return place(before) !== place(after);
}
