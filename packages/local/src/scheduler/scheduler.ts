/**
 * A minimal scheduler: filters nodes, prefers the one with the fewest pods, lets delayed claims be
 * provisioned for the chosen node, then binds. Source: docs/behaviour/controllers.md B7.
 *
 * Invariant: one pod at a time, and a pod counts on the node chosen for it from that moment on, while
 * its claims are still being provisioned and before the cache has seen it bound, so that two pods
 * never take the same last slot.
 */
import {
  createEventRecorder,
  isConflict,
  isDeleting,
  isNotFound,
  keyOf,
  type Node,
  type Pod,
  type ReconcileResult,
  refOf,
  resources,
  type Stored,
  settled,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { selectedNodeAnnotation } from "@longshore/storage";
import type { WorkloadsEnv } from "../workloads/stateful-set-controller.ts";
import type { ClusterView } from "./cluster-view.ts";
import { claimsOfPod, isFullyBound, reasonAgainst } from "./node-filters.ts";

/** Time until the next attempt for a pod that fits no node, or waits for its claims, without any change. */
const retryMs = 5000;

/** Options of {@link startScheduler}. */
export interface SchedulerOptions {
  /** Whether the scheduler's gates migrate the in-tree plugin. */
  readonly migrates: (inTreePluginName: string) => boolean;
}

/** Starts the scheduler. */
export function startScheduler(given: WorkloadsEnv, options: SchedulerOptions): Component {
  const env = trackWrites(given, given.informers);
  const caches = {
    pods: env.informers.of(resources.pods),
    nodes: env.informers.of(resources.nodes),
    claims: env.informers.of(resources.persistentVolumeClaims),
    volumes: env.informers.of(resources.persistentVolumes),
    classes: env.informers.of(resources.storageClasses),
    csiNodes: env.informers.of(resources.csiNodes),
  };
  /** Pods with the node chosen for them, by key, until the cache shows them there. */
  const assumed = new Map<string, Stored<Pod>>();
  /** UIDs of pods that have been bound here, by key: the next pod of that name is another. */
  const bound = new Map<string, string>();
  const forget = (key: string) => {
    assumed.delete(key);
    bound.delete(key);
  };
  const events = createEventRecorder(env, { component: "default-scheduler" });
  const view: ClusterView = {
    get nodes() {
      return caches.nodes.list();
    },
    podsOn: (nodeName) => {
      const cached = caches.pods.list().filter((p) => p.spec?.nodeName === nodeName && !hasEnded(p));
      const pending = [...assumed.values()].filter((p) => p.spec?.nodeName === nodeName);
      return [...cached, ...pending];
    },
    claim: (namespace, name) => caches.claims.get(`${namespace}/${name}`),
    volume: (name) => caches.volumes.get(name),
    storageClass: (name) => caches.classes.get(name),
    csiNode: (name) => caches.csiNodes.get(name),
    migrates: options.migrates,
  };

  const reconcile = async (key: string, signal: AbortSignal): Promise<ReconcileResult> => {
    await Promise.all(Object.values(caches).map((cache) => cache.synced(signal)));
    const pod = caches.pods.get(key);
    if (pod === undefined || pod.spec?.nodeName !== undefined || isDeleting(pod)) {
      forget(key);
      return settled;
    }
    if (bound.get(key) === pod.metadata.uid) return settled;
    assumed.delete(key);
    const choice = chooseNode(view, pod);
    if (choice.node === undefined) {
      events.event(pod, "Warning", "FailedScheduling", choice.reason);
      return { requeueAfterMs: retryMs };
    }
    const nodeName = choice.node.metadata.name;
    assumed.set(key, { ...pod, spec: { ...pod.spec, nodeName } } as Stored<Pod>);
    if (!(await bindClaims(env, view, pod, nodeName, signal))) return { requeueAfterMs: retryMs };
    await bindPod(env, pod, nodeName, signal);
    bound.set(key, pod.metadata.uid);
    events.event(pod, "Normal", "Scheduled", `Successfully assigned ${key} to ${nodeName}`);
    return settled;
  };

  const queue = startWorkQueue(env, { name: "scheduler", workers: 1, reconcile });
  const wakePod = (pod: Stored<Pod>) => {
    if (pod.spec?.nodeName === undefined) return queue.add(keyOf(pod));
    forget(keyOf(pod));
  };
  const wakeAll = () => {
    for (const pod of caches.pods.list()) if (pod.spec?.nodeName === undefined) queue.add(keyOf(pod));
  };
  const onAny = { added: wakeAll, updated: wakeAll, deleted: wakeAll };
  const unsubscribe = [
    caches.pods.onChange({
      added: wakePod,
      updated: (_, pod) => wakePod(pod),
      deleted: (pod) => {
        forget(keyOf(pod));
        wakeAll();
      },
    }),
    caches.nodes.onChange({ ...onAny, updated: (before, after) => nodeMatters(before, after) && wakeAll() }),
    caches.claims.onChange(onAny),
    caches.csiNodes.onChange(onAny),
  ];
  return {
    async stop() {
      for (const end of unsubscribe) end();
      await queue.stop();
      await events.stop();
    },
  };
}

/** Picks the fitting node with the fewest pods; ties go to the first by name. */
function chooseNode(
  view: ClusterView,
  pod: Stored<Pod>,
): { readonly node: Stored<Node> } | { readonly node: undefined; readonly reason: string } {
  const reasons = new Map<string, number>();
  const fitting: Stored<Node>[] = [];
  for (const node of view.nodes) {
    const reason = reasonAgainst(view, pod, node);
    if (reason === undefined) fitting.push(node);
    else reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const load = (node: Stored<Node>) => view.podsOn(node.metadata.name).length;
  const best = fitting.sort((a, b) => load(a) - load(b) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
  if (best !== undefined) return { node: best };
  const list = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ");
  return { node: undefined, reason: `0/${view.nodes.length} nodes are available: ${list || "none exist"}.` };
}

/** Names the chosen node on delayed claims; true once every claim of the pod is bound. */
async function bindClaims(
  env: WorkloadsEnv,
  view: ClusterView,
  pod: Stored<Pod>,
  nodeName: string,
  signal: AbortSignal,
): Promise<boolean> {
  let bound = true;
  for (const { claim } of claimsOfPod(view, pod)) {
    if (claim === undefined || isFullyBound(claim)) continue;
    bound = false;
    if (claim.metadata.annotations?.[selectedNodeAnnotation] === nodeName) continue;
    const annotations = { ...claim.metadata.annotations, [selectedNodeAnnotation]: nodeName };
    await env.kube
      .update(
        resources.persistentVolumeClaims,
        { ...claim, metadata: { ...claim.metadata, annotations } },
        { signal },
      )
      .catch((error) => {
        if (!isConflict(error) && !isNotFound(error)) throw error; // The cache lags: its news wakes the pod.
      });
  }
  return bound;
}

async function bindPod(
  env: WorkloadsEnv,
  pod: Stored<Pod>,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: {
      name: pod.metadata.name,
      namespace: pod.metadata.namespace ?? "default",
      uid: pod.metadata.uid,
    },
    target: { apiVersion: "v1", kind: "Node", name: nodeName },
  };
  await env.kube.createSubresource(resources.pods, refOf(pod), "binding", binding, { signal });
}

function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** Heartbeats do not change where pods fit. */
function nodeMatters(before: Stored<Node>, after: Stored<Node>): boolean {
  const facts = (node: Stored<Node>) =>
    JSON.stringify([
      node.spec?.unschedulable,
      node.spec?.taints,
      node.metadata.labels,
      node.status?.allocatable,
      node.status?.conditions?.find((c) => c.type === "Ready")?.status,
    ]);
  return facts(before) !== facts(after);
}
