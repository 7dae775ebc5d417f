/** Keeps the lease of a node fresh. Source: docs/behaviour/node-agent.md 8. */
import { type KubeClient, type Lease, microTime, resources, updateWithRetry } from "@longshore/kube";
import { periodically, type RuntimeEnv } from "@longshore/runtime";
import type { NodeIdentity } from "./node-object.ts";

const leasePeriodMs = 10_000;

/** Renews the node's Lease in `kube-node-lease` until stopped. */
export function renewNodeLease(
  env: RuntimeEnv & { readonly kube: KubeClient },
  identity: NodeIdentity,
  signal: AbortSignal,
): Promise<void> {
  const options = { name: "node lease", periodMs: leasePeriodMs };
  return periodically(env, options, signal, async (passSignal) => {
    const renewTime = microTime(env.clock.now());
    const spec = { holderIdentity: identity.nodeName, leaseDurationSeconds: 40, renewTime };
    const ref = { namespace: "kube-node-lease", name: identity.nodeName };
    const change = (lease: Lease) => ({ ...lease, spec: { ...lease.spec, ...spec } });
    const renewed = await updateWithRetry(env.kube, resources.leases, ref, (l) => change(l) as typeof l, {
      signal: passSignal,
    });
    if (renewed !== undefined) return;
    const lease: Lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: ref, spec };
    await env.kube.create(resources.leases, lease, { signal: passSignal });
  });
}
