/**
 * Removes pods that no agent will ever end: those of a node that is out of service, and those that were deleted before they
 * had a node. Source: Kubernetes pod garbage collection; KEP-2268.
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
import type { Component } from "@longshore/runtime";
import { outOfServiceTaint } from "@longshore/volumes";
import {
  decidePodRemovalStep,
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
  const podsOf = (node: Stored<Node>) =>
    isOutOfService(node) ? pods.byIndex(podsByNodeIndex, node.metadata.name).map(keyOf) : [];
  return startController<RemovalObservation, RemovalStep>(env, {
    name: "pod-removal",
    sources: [
      forResource(pods, { selects: (pod) => mayHaveToGo(pod, nodes.get(pod.spec?.nodeName ?? "")) }),
      watches(nodes, podsOf, { deleted: () => [] }),
    ],
    observe(key) {
      const pod = pods.get(key);
      return pod === undefined ? undefined : { pod, node: nodes.get(pod.spec?.nodeName ?? "") };
    },
    decide: decidePodRemovalStep,
    actions: {
      async removePod({ reason }, { pod }, { signal }) {
        env.logger.info("pod removed without its agent", { pod: keyOf(pod), reason });
        const { uid } = pod.metadata;
        await env.kube.delete(resources.pods, refOf(pod), { signal, uid, gracePeriodSeconds: 0 });
        return settled;
      },
      settle: () => settled,
    },
  });
}

function mayHaveToGo(pod: Pod, node: Stored<Node> | undefined): boolean {
  return pod.metadata?.deletionTimestamp !== undefined || (node !== undefined && isOutOfService(node));
}

function isOutOfService({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === outOfServiceTaint) === true;
}
