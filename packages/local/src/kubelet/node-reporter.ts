/** Registers the Node and keeps its status and lease fresh. Source: docs/behaviour/node-agent.md 8. */
import {
  isAlreadyExists,
  type KubeClient,
  type Lease,
  type ReconcileResult,
  resources,
  updateWithRetry,
} from "@longshore/kube";
import { periodically, type RuntimeEnv } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import {
  featureGatesAnnotation,
  type NodeIdentity,
  nodeStatusOf,
  registeredNode,
  statusDiffers,
} from "./node-object.ts";

type ReporterEnv = RuntimeEnv & { readonly kube: KubeClient };

/** The status is looked at this often even when nothing seems to have changed. */
const statusPeriodMs = 10_000;
/** An unchanged status is posted this often, as a sign of life. */
const heartbeatMs = 5 * 60_000;
const leasePeriodMs = 10_000;

/**
 * One pass of the status reporter: makes or updates the Node, posts its status where it differs,
 * and passes to the volume manager which volumes the posted status names.
 */
export async function reportNodeStatus(
  env: ReporterEnv,
  identity: NodeIdentity,
  volumes: Pick<NodeVolumes, "status" | "markReportedInUse">,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const ref = { name: identity.nodeName };
  let node = await env.kube.get(resources.nodes, ref, { signal });
  if (node === undefined) {
    node = await env.kube
      .create(resources.nodes, registeredNode(identity, undefined), { signal })
      .catch((error) => {
        if (isAlreadyExists(error)) return undefined;
        throw error;
      });
    if (node === undefined) return { requeueAfterMs: 0 };
  }
  if (node.metadata.annotations?.[featureGatesAnnotation] !== identity.featureGates) {
    node =
      (await updateWithRetry(env.kube, resources.nodes, ref, (n) => registeredNode(identity, n) as typeof n, {
        signal,
      })) ?? node;
  }
  const next = nodeStatusOf(identity, node, { ...volumes.status(), now: env.clock.now() });
  const lastBeat = node.status?.conditions?.find((c) => c.type === "Ready")?.lastHeartbeatTime;
  const stale = lastBeat === undefined || env.clock.now().getTime() - Date.parse(lastBeat) >= heartbeatMs;
  if (stale || statusDiffers(node, next)) {
    const patch = { type: "merge", body: { status: next } } as const;
    node = await env.kube.patch(resources.nodes, ref, patch, { subresource: "status", signal });
  }
  volumes.markReportedInUse(node.status?.volumesInUse ?? []);
  return { requeueAfterMs: statusPeriodMs };
}

/** Renews the node's Lease in `kube-node-lease` until stopped. */
export function renewNodeLease(env: ReporterEnv, identity: NodeIdentity, signal: AbortSignal): Promise<void> {
  const options = { name: "node lease", periodMs: leasePeriodMs };
  return periodically(env, options, signal, async (passSignal) => {
    const renewTime = `${env.clock.now().toISOString().slice(0, 23)}000Z`;
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
