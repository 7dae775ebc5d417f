/**
 * Removes pods that no agent will ever end: those of a node that is out of service or whose object was deleted, and those that were
 * deleted before they had a node. Source: Kubernetes pod garbage collection; KEP-2268.
 */
import {
  forResource,
  keyOf,
  type Node,
  type Pod,
  refOf,
  resources,
  type Stored,
  settled,
  startController,
  trackWrites,
  watches,
} from "@longshore/kube";
import type { Clock, Component } from "@longshore/runtime";
import { outOfServiceTaint } from "@longshore/volumes";
import {
  decidePodRemovalStep,
  missingNodeMs,
  type RemovalObservation,
  type RemovalStep,
} from "./decide-pod-removal-step.ts";
import type { WorkloadsEnv } from "./workloads-env.ts";

const podsByNodeIndex = "pod-removal/node";

/** Starts the controller; it works in the background until it is stopped. */
export function startPodRemovalController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const nodes = env.informers.of(resources.nodes);
  const pods = env.informers.of(resources.pods, {
    indexes: { [podsByNodeIndex]: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]) },
  });
  const allPodsOf = (node: Stored<Node>) => pods.byIndex(podsByNodeIndex, node.metadata.name).map(keyOf);
  const podsOf = (node: Stored<Node>) => (isOutOfService(node) ? allPodsOf(node) : []);
  const missing = new MissingNodes(env.clock);
  return startController<RemovalObservation, RemovalStep>(env, {
    name: "pod-removal",
    sources: [
      forResource(pods, { selects: (pod) => mayHaveToGo(pod, nodes.get(pod.spec?.nodeName ?? "")) }),
      watches(nodes, podsOf, {
        deleted: (node) => {
          missing.forget(node.metadata.name);
          return allPodsOf(node);
        },
      }),
    ],
    async observe(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined) return undefined;
      const name = pod.spec?.nodeName ?? "";
      const cached = name === "" ? undefined : nodes.get(name);
      if (name === "" || cached !== undefined) {
        missing.forget(name);
        return { pod, node: cached, missingForMs: 0 };
      }
      const missingForMs = missing.seen(name);
      // Before anything is taken from it: a cache may lag.
      const isDue = missingForMs >= missingNodeMs;
      const node = isDue ? await env.kube.get(resources.nodes, { name }, { signal }) : undefined;
      return { pod, node, missingForMs };
    },
    decide: decidePodRemovalStep,
    actions: {
      async removePod({ reason }, { pod }, { signal }) {
        env.logger.info("pod removed without its agent", { pod: keyOf(pod), reason });
        const { uid } = pod.metadata;
        await env.kube.delete(resources.pods, refOf(pod), { signal, uid, gracePeriodSeconds: 0 });
        return settled;
      },
      waitForNode: ({ ms }) => ({ requeueAfterMs: ms }),
      settle: () => settled,
    },
  });
}

/** Since when nodes that pods name have been missing. */
class MissingNodes {
  readonly #clock: Clock;
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It is missing now; returns for how long it has been, in milliseconds. */
  seen(name: string): number {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#sinceMs.get(name) ?? nowMs;
    this.#sinceMs.set(name, sinceMs);
    return nowMs - sinceMs;
  }

  /** It is there, or begins to be missing. */
  forget(name: string): void {
    this.#sinceMs.delete(name);
  }
}

function mayHaveToGo(pod: Pod, node: Stored<Node> | undefined): boolean {
  if (pod.metadata?.deletionTimestamp !== undefined) return true;
  return node === undefined ? pod.spec?.nodeName !== undefined : isOutOfService(node);
}

function isOutOfService({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === outOfServiceTaint) === true;
}
