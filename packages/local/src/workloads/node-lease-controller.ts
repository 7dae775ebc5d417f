/** Sets the condition of a node to Unknown once it has not renewed its lease for 40 s. */
import {
  type Actions,
  forResource,
  isConflict,
  isNotFound,
  type KubeEnv,
  resources,
  type SharedInformers,
  startController,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { decideNodeLeaseStep, type NodeLeaseStep, type ObservedNodeLease } from "./decide-node-lease-step.ts";
import { graceMs } from "./lapsed-condition.ts";

/** A node is not checked more often, but for the moment at which its lease may run out. */
const checkPeriodMs = 5000;

/** Starts the controller. @param env with its writes tracked */
export function startNodeLeaseController(env: KubeEnv & { readonly informers: SharedInformers }): Component {
  const nodes = env.informers.of(resources.nodes);
  return startController<ObservedNodeLease, NodeLeaseStep>(env, {
    name: "node-leases",
    // A check that failed is no reason to leave a node unchecked for longer than the period.
    backoff: { initialMs: checkPeriodMs, maximumMs: checkPeriodMs },
    // Time makes a lease lapse, no event: from its first check on, each node is looked at periodically.
    sources: [forResource(nodes, { changed: () => false, deleted: "forget" })],
    async observe(name, { signal }) {
      if (nodes.get(name) === undefined) return undefined;
      const ref = { namespace: "kube-node-lease", name };
      const lease = await env.kube.get(resources.leases, ref, { signal });
      // Read after the lease: the node may have reported meanwhile, or be gone.
      const node = nodes.get(name);
      return node === undefined ? undefined : { node, lease, now: env.clock.now() };
    },
    decide: decideNodeLeaseStep,
    actions: nodeLeaseActions(env),
  });
}

function nodeLeaseActions({ kube }: KubeEnv): Actions<ObservedNodeLease, NodeLeaseStep> {
  return {
    async markUnknown({ conditions }, { node: { metadata } }, { signal }) {
      const { name, resourceVersion } = metadata;
      const patch = {
        type: "merge",
        body: { metadata: { resourceVersion }, status: { conditions } },
      } as const;
      await kube.patch(resources.nodes, { name }, patch, { subresource: "status", signal }).catch((error) => {
        // The node has just reported, or is gone: the next check decides.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      });
      return { requeueAfterMs: checkPeriodMs };
    },
    checkLater: (_step, observed) => ({ requeueAfterMs: nextCheckMs(observed) }),
  };
}

/** A lease cannot run out before its time, whatever happens: there is nothing to look at until then. */
function nextCheckMs({ lease, now }: ObservedNodeLease): number {
  const renewed = Date.parse(lease?.spec?.renewTime ?? "");
  if (Number.isNaN(renewed)) return checkPeriodMs;
  const leftMs = renewed + graceMs - now.getTime();
  // A clock that was set back must not put it off for longer.
  return Math.min(graceMs, Math.max(checkPeriodMs, leftMs));
}
