/** Keeps the lease of a node fresh. Source: docs/behaviour/node-agent.md 8. */
import {
  isConflict,
  isNotFound,
  type KubeClient,
  type Lease,
  microTime,
  resources,
  type Stored,
  updateWithRetry,
} from "@longshore/kube";
import { periodically, type RuntimeEnv } from "@longshore/runtime";
import type { NodeIdentity } from "./node-object.ts";

const leasePeriodMs = 10_000;

/**
 * Renews the node's Lease in `kube-node-lease` until stopped: from what it wrote last, as upstream
 * `k8s.io/component-helpers/apimachinery/lease` does; it reads the Lease where that is not what is stored any more.
 */
export function renewNodeLease(
  env: RuntimeEnv & { readonly kube: KubeClient },
  identity: NodeIdentity,
  signal: AbortSignal,
): Promise<void> {
  const options = { name: "node lease", periodMs: leasePeriodMs };
  let latest: Stored<Lease> | undefined;
  return periodically(env, options, signal, async (passSignal) => {
    const renewTime = microTime(env.clock.now());
    const spec = { holderIdentity: identity.nodeName, leaseDurationSeconds: 40, renewTime };
    const renewed = <L extends Lease>(lease: L): L => ({ ...lease, spec: { ...lease.spec, ...spec } });
    const known = latest;
    // Until there is an answer, nothing is known of it.
    latest = undefined;
    if (known !== undefined) {
      try {
        latest = await env.kube.update(resources.leases, renewed(known), { signal: passSignal });
        return;
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    const ref = { namespace: "kube-node-lease", name: identity.nodeName };
    latest = await updateWithRetry(env.kube, resources.leases, ref, renewed, { signal: passSignal });
    if (latest !== undefined) return;
    const lease: Lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: ref, spec };
    latest = await env.kube.create(resources.leases, lease, { signal: passSignal });
  });
}
