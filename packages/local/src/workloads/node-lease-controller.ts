/**
 * Sets the condition of a node to Unknown once it has not renewed its lease for 40 s. What counts is when the controller sees a change, as
 * in Kubernetes: the time that the node writes into its lease is that of the node's clock.
 */
import {
  type Actions,
  forResource,
  isConflict,
  isNotFound,
  type KubeEnv,
  type Lease,
  type Node,
  resources,
  type SharedInformers,
  type Stored,
  startController,
} from "@longshore/kube";
import type { Clock, Component } from "@longshore/runtime";
import { decideNodeLeaseStep, type NodeLeaseStep, type ObservedNodeLease } from "./decide-node-lease-step.ts";

/** Each node is checked this often. */
const checkPeriodMs = 5000;

/** Starts the controller. @param env with its writes tracked */
export function startNodeLeaseController(env: KubeEnv & { readonly informers: SharedInformers }): Component {
  const nodes = env.informers.of(resources.nodes);
  const signs = new SignsOfLife(env.clock);
  return startController<ObservedNodeLease, NodeLeaseStep>(env, {
    name: "node-leases",
    // A check that failed is no reason to leave a node unchecked for longer than the period.
    backoff: { initialMs: checkPeriodMs, maximumMs: checkPeriodMs },
    // Time makes a lease lapse, no event: from its first check on, each node is looked at periodically.
    sources: [forResource(nodes, { changed: () => false, deleted: (node) => [node.metadata.name] })],
    async observe(name, { signal }) {
      if (nodes.get(name) === undefined) {
        signs.forget(name);
        return undefined;
      }
      // Read live: a cache that lags would let a healthy node lapse.
      const ref = { namespace: "kube-node-lease", name };
      const lease = await env.kube.get(resources.leases, ref, { signal });
      // Read after the lease: the node may have reported meanwhile, or be gone.
      const node = nodes.get(name);
      if (node === undefined) return undefined;
      return { node, silentMs: signs.silentMs(node, lease), now: env.clock.now() };
    },
    decide: decideNodeLeaseStep,
    actions: nodeLeaseActions(env),
  });
}

/** When each node was last seen to renew its lease, or to post its status. */
class SignsOfLife {
  readonly #clock: Clock;
  readonly #last = new Map<string, { readonly sign: string; readonly seenMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For how long it has given none, in milliseconds; of a node that is seen for the first time, 0. */
  silentMs(node: Stored<Node>, lease: Stored<Lease> | undefined): number {
    const { name } = node.metadata;
    const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
    const sign = `${lease?.spec?.renewTime} ${ready?.lastHeartbeatTime}`;
    const nowMs = this.#clock.monotonicMs();
    const last = this.#last.get(name);
    if (last?.sign === sign) return nowMs - last.seenMs;
    this.#last.set(name, { sign, seenMs: nowMs });
    return 0;
  }

  forget(name: string): void {
    this.#last.delete(name);
  }
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
    checkLater: () => ({ requeueAfterMs: checkPeriodMs }),
  };
}
