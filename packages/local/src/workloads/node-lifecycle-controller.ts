/**
 * Keeps a node's taints in step with its condition and its cordon, and its condition in step with its
 * lease: a node that has not renewed for 40 s is Unknown. It evicts nothing.
 * Source: Kubernetes node life cycle (taints by condition, node leases).
 */
import {
  isConflict,
  isNotFound,
  type Lease,
  type Node,
  type NodeCondition,
  resources,
  type Stored,
  settled,
  startWorkQueue,
  type Taint,
  trackWrites,
  updateWithRetry,
} from "@longshore/kube";
import { type Component, periodically, TaskGroup } from "@longshore/runtime";
import type { WorkloadsEnv } from "./stateful-set-controller.ts";

const notReady = "node.kubernetes.io/not-ready";
const unreachable = "node.kubernetes.io/unreachable";
const unschedulable = "node.kubernetes.io/unschedulable";
const managed: readonly string[] = [notReady, unreachable, unschedulable];

const graceMs = 40_000;
const checkPeriodMs = 5000;

/** The taints that the node should carry: those of others, and ours by its condition and cordon. */
export function wantedTaints(node: Node): Taint[] {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready")?.status;
  const keys = [
    ...(ready === "Unknown" ? [unreachable] : ready === "True" ? [] : [notReady]),
    ...(node.spec?.unschedulable === true ? [unschedulable] : []),
  ];
  const taints = node.spec?.taints ?? [];
  const ours = (taint: Taint) => managed.includes(taint.key) && taint.effect === "NoSchedule";
  const kept = taints.filter((taint) => !ours(taint) || keys.includes(taint.key));
  const missing = keys.filter((key) => !kept.some((taint) => taint.key === key && ours(taint)));
  return [...kept, ...missing.map((key) => ({ key, effect: "NoSchedule" }))];
}

/** The Ready condition of a node whose lease has run out, or undefined while there is nothing to say. */
export function lapsedCondition(node: Node, lease: Lease | undefined, now: Date): NodeCondition | undefined {
  const ready = node.status?.conditions?.find((c) => c.type === "Ready");
  if (ready === undefined || ready.status === "Unknown") return undefined;
  const seen = lease?.spec?.renewTime ?? ready.lastHeartbeatTime;
  if (seen === undefined || now.getTime() - Date.parse(seen) < graceMs) return undefined;
  return {
    ...ready,
    status: "Unknown",
    reason: "NodeStatusUnknown",
    message: "node agent stopped posting node status",
    lastTransitionTime: `${now.toISOString().slice(0, 19)}Z`,
  };
}

/** Starts the controller. */
export function startNodeLifecycleController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const nodes = env.informers.of(resources.nodes);
  const tasks = new TaskGroup((error) => env.logger.error("node life cycle failed", { error }));
  const queue = startWorkQueue(env, {
    name: "node-lifecycle",
    reconcile: async (name, signal) => {
      await nodes.synced(signal);
      const node = nodes.get(name);
      if (node === undefined || sameTaints(node, wantedTaints(node))) return settled;
      const withTaints = (current: Stored<Node>) => {
        const taints = wantedTaints(current);
        return sameTaints(current, taints) ? undefined : { ...current, spec: { ...current.spec, taints } };
      };
      await updateWithRetry(env.kube, resources.nodes, { name }, withTaints, { signal });
      return settled;
    },
  });
  const unsubscribe = nodes.onChange({
    added: (node) => queue.add(node.metadata.name),
    updated: (_, node) => queue.add(node.metadata.name),
  });
  tasks.spawn((signal) =>
    periodically(env, { name: "node leases", periodMs: checkPeriodMs }, signal, async (s) => {
      await nodes.synced(s);
      for (const node of nodes.list()) await checkLease(env, node, s);
    }),
  );
  return {
    async stop() {
      unsubscribe();
      await tasks.stop();
      await queue.stop();
    },
  };
}

async function checkLease(env: WorkloadsEnv, node: Stored<Node>, signal: AbortSignal): Promise<void> {
  const name = node.metadata.name;
  const lease = await env.kube.get(resources.leases, { namespace: "kube-node-lease", name }, { signal });
  const lapsed = lapsedCondition(node, lease, env.clock.now());
  if (lapsed === undefined) return;
  const conditions = (node.status?.conditions ?? []).map((c) => (c.type === "Ready" ? lapsed : c));
  const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, status: { conditions } };
  await env.kube
    .patch(resources.nodes, { name }, { type: "merge", body }, { subresource: "status", signal })
    .catch((error) => {
      // The node has just reported, or is gone: the next check decides. The check of other nodes goes on.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    });
}

function sameTaints(node: Node, taints: readonly Taint[]): boolean {
  const facts = (list: readonly Taint[]) => JSON.stringify(list.map((t) => [t.key, t.value, t.effect]));
  return facts(node.spec?.taints ?? []) === facts(taints);
}
