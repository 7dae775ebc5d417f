/**
 * The kubelet shell: registers the Node, reports its status, and runs the pods bound to it. All that
 * concerns volumes is in `@longshore/volumes`' node part, which this composes.
 *
 * Invariants
 *  - A container starts only with all its volumes certainly mounted.
 *  - A pod object is deleted only when nothing of it runs and none of its volumes may be mounted.
 *  - Nothing is remembered across a restart: pods are found again in the runtime.
 */
import type { CsiConnector } from "@longshore/csi";
import {
  createEventRecorder,
  type KubeClient,
  keyOf,
  resources,
  startInformer,
  startWorkQueue,
} from "@longshore/kube";
import {
  type Component,
  type FeatureGates,
  type Host,
  type RuntimeEnv,
  stopAll,
  TaskGroup,
} from "@longshore/runtime";
import { startNodeVolumes, type VolumePlugin } from "@longshore/volumes";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { NodeIdentity } from "./node-object.ts";
import { renewNodeLease, reportNodeStatus } from "./node-reporter.ts";
import { PodWorker } from "./pod-worker.ts";

/** The seams of a node agent. */
export interface KubeletEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly connector: CsiConnector;
  readonly runtime: PodRuntime;
}

/** Options of {@link startKubelet}. */
export interface KubeletOptions {
  readonly identity: NodeIdentity;
  /** The kubelet root directory, e.g. `/var/lib/kubelet`. */
  readonly rootDir: string;
  /** Where containers' output goes. */
  readonly logDir: string;
  readonly gates: FeatureGates;
  readonly plugins: readonly VolumePlugin[];
}

/** Starts the node agent. */
export function startKubelet(env: KubeletEnv, options: KubeletOptions): Component {
  const { identity } = options;
  const tasks = new TaskGroup((error) => env.logger.error("kubelet task failed", { error }));
  const events = createEventRecorder(env, { component: "kubelet", host: identity.nodeName });
  const pods = startInformer(env, resources.pods, { fieldSelector: `spec.nodeName=${identity.nodeName}` });
  let statusChanged = () => {};
  const volumes = startNodeVolumes(env, {
    nodeName: identity.nodeName,
    rootDir: options.rootDir,
    gates: options.gates,
    plugins: options.plugins,
    onStatusChanged: () => statusChanged(),
  });
  const worker = new PodWorker(env, { volumes, events, pods, logDir: options.logDir });
  const queue = startWorkQueue(env, {
    name: "kubelet-pods",
    workers: 32,
    backoff: { initialMs: 200, maximumMs: 10_000, jitter: 0.1 },
    reconcile: (podUID, signal) => worker.reconcile(podUID, signal),
  });
  const statusQueue = startWorkQueue(env, {
    name: "kubelet-status",
    workers: 1,
    reconcile: (_key, signal) => reportNodeStatus(env, identity, volumes, signal),
  });
  statusChanged = () => {
    statusQueue.add("status");
    for (const podUID of worker.podsEnding()) queue.add(podUID);
  };

  const onPods = (podUID: string) => {
    if (!pods.hasSynced()) return;
    volumes.setPods(pods.list());
    worker.interrupt(podUID);
    queue.add(podUID);
  };
  const unsubscribe = pods.onChange({
    added: (pod) => onPods(pod.metadata.uid),
    updated: (before, pod) => {
      if (before.metadata.uid !== pod.metadata.uid) onPods(before.metadata.uid);
      onPods(pod.metadata.uid);
    },
    deleted: (pod) => onPods(pod.metadata.uid),
  });
  tasks.spawn(async (signal) => {
    await pods.synced(signal);
    volumes.setPods(pods.list());
    for (const pod of pods.list()) queue.add(pod.metadata.uid);
    for (const podUID of await env.runtime.list(signal)) queue.add(podUID);
  });
  tasks.spawn((signal) => renewNodeLease(env, identity, signal));
  statusQueue.add("status");
  env.logger.info("node agent started", { node: identity.nodeName, pods: pods.list().map(keyOf).length });

  return {
    async stop() {
      unsubscribe();
      await tasks.stop();
      await stopAll([events, pods, volumes, statusQueue, queue]);
    },
  };
}
