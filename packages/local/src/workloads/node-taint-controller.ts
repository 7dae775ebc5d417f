/** Keeps the taints of nodes in step with their condition and cordon. It evicts nothing. */
import {
  type Actions,
  forResource,
  isNotFound,
  type KubeEnv,
  resources,
  type SharedInformers,
  settled,
  startController,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  decideNodeTaintStep,
  type NodeTaintStep,
  type ObservedNodeTaints,
} from "./decide-node-taint-step.ts";

/** Starts the controller. @param env with its writes tracked */
export function startNodeTaintController(env: KubeEnv & { readonly informers: SharedInformers }): Component {
  const nodes = env.informers.of(resources.nodes);
  return startController<ObservedNodeTaints, NodeTaintStep>(env, {
    name: "node-lifecycle",
    sources: [forResource(nodes, { deleted: "forget" })],
    observe(name) {
      const node = nodes.get(name);
      return node === undefined ? undefined : { node };
    },
    decide: decideNodeTaintStep,
    actions: nodeTaintActions(env),
  });
}

function nodeTaintActions({ kube }: KubeEnv): Actions<ObservedNodeTaints, NodeTaintStep> {
  return {
    async writeTaints({ taints }, { node }, { signal }) {
      // The version that was read: a node that has changed since is looked at again.
      const changed = { ...node, spec: { ...node.spec, taints: [...taints] } };
      await kube.update(resources.nodes, changed, { signal }).catch((error) => {
        if (!isNotFound(error)) throw error;
      });
      return settled;
    },
    settle: () => settled,
  };
}
