/**
 * Brings each pod of the node to the state that its object asks for: volumes mounted, container running, status
 * reported; or all of it taken back, and then the object deleted.
 *
 * Keys are UIDs: a pod and the next of its name are two. What is left of pods whose object is gone is found in the
 * runtime when the worker starts. The rules are in `decide-pod-step.ts`, the actions in `pod-actions.ts`.
 */
import {
  ComponentScope,
  type Controller,
  type EventRecorder,
  type Informer,
  type KubeClient,
  type Pod,
  type Source,
  type Stored,
  source,
  startController,
} from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import type { NodeVolumes } from "@longshore/volumes";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { ProbeNetwork } from "../containers/probe-network.ts";
import { decidePodStep, type PodObservation } from "./decide-pod-step.ts";
import type { EmptyDirLimits } from "./empty-dir-limits.ts";
import { deletingPods, isWanted, podByUID } from "./node-pods.ts";
import type { NodeShutdown } from "./node-shutdown.ts";
import { type PodParts, podActions } from "./pod-actions.ts";
import { type Probes, startProbes } from "./probes.ts";
import { VolumeWaits } from "./volume-waits.ts";

/** The seams of the pod worker. */
export interface PodWorkerEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly runtime: PodRuntime;
  /** How probes and hooks reach containers. */
  readonly network: ProbeNetwork;
}

/** What the pod worker works with. */
export interface PodWorkerOptions {
  readonly volumes: NodeVolumes;
  readonly events: EventRecorder;
  /** The pods of the node, from `startNodePods`. */
  readonly pods: Informer<Pod>;
  /** How far the shutdown of the node has come. */
  readonly shutdown: Pick<NodeShutdown, "forPods">;
  /** Which pods have more in an emptyDir than they may. */
  readonly emptyDirs: Pick<EmptyDirLimits, "of">;
  /** Where containers' output goes. */
  readonly logDir: string;
}

/** The running worker. */
export interface PodWorker extends Component {
  /** Looks again at the pods whose deletion waits for their volumes. */
  wakeDeleting(): void;
  /** Looks again at the pod. */
  wake(podUID: string): void;
  /** Looks again at all pods, and ends their waits for volumes: the node shuts down. */
  wakeAll(): void;
}

/**
 * Starts the worker; the first pass begins once `pods` has synced. It hands the pods of the node to `volumes` before it
 * looks at the one that changed. `stop` leaves containers running.
 */
export function startPodWorker(env: PodWorkerEnv, options: PodWorkerOptions): PodWorker {
  const { pods, events, volumes } = options;
  const waits = new VolumeWaits(volumes);
  const scope = new ComponentScope((error) => env.logger.error("pod worker failed", { error }));
  let onVerdict: (podUID: string) => void = () => {};
  const probes = startProbes(env, { pods, events, onVerdict: (podUID) => onVerdict(podUID) });
  const controller = startPodController(env, options, probes, waits);
  onVerdict = (podUID) => controller.wake(podUID);
  scope.own(probes, controller);
  const endWatch = env.runtime.onEnd?.((podUID) => controller.wake(podUID));
  if (endWatch !== undefined) scope.own({ stop: async () => endWatch() });
  scope.spawn(async (signal) => {
    for (const podUID of await env.runtime.list(signal)) controller.wake(podUID);
  });
  return {
    wakeDeleting() {
      for (const podUID of deletingPods(pods)) controller.wake(podUID);
    },
    wake: (podUID) => controller.wake(podUID),
    wakeAll() {
      for (const { metadata } of pods.list()) {
        waits.interrupt(metadata.uid);
        controller.wake(metadata.uid);
      }
    },
    stop: () => scope.stop(),
  };
}

function startPodController(
  env: PodWorkerEnv,
  options: PodWorkerOptions,
  probes: Probes,
  waits: VolumeWaits,
): Controller {
  const { volumes, pods } = options;
  const { clock, kube, runtime, network } = env;
  const parts: PodParts = { ...options, clock, kube, runtime, network, waits, probes };
  return startController(env, {
    name: "kubelet-pods",
    workers: 32,
    // Each step goes one further in the pod's list of containers, which has an end.
    stepsMax: Number.POSITIVE_INFINITY,
    backoff: { initialMs: 200, maximumMs: 10_000, jitter: 0.1 },
    sources: [podsOfNode(pods, volumes, waits)],
    caches: [pods],
    observe: (podUID, { signal }) => observePod(parts, podUID, signal),
    decide: decidePodStep,
    actions: podActions(parts),
  });
}

/** Wakes the pods that change, once the volume manager knows of the change. */
function podsOfNode(pods: Informer<Pod>, volumes: Pick<NodeVolumes, "setPods">, waits: VolumeWaits): Source {
  return source((wake) => {
    // The first call says that all pods are known, also where there are none.
    let known = pods.list();
    volumes.setPods(known);
    const onPod = ({ metadata: { uid } }: Stored<Pod>) => {
      const listed = pods.list();
      if (listed !== known) volumes.setPods(listed);
      known = listed;
      if (!isWanted(pods, uid)) waits.interrupt(uid);
      wake(uid);
    };
    return pods.onChange({ added: onPod, updated: (_before, after) => onPod(after), deleted: onPod });
  });
}

async function observePod(
  { clock, runtime, pods, probes, shutdown, emptyDirs }: PodParts,
  podUID: string,
  signal: AbortSignal,
): Promise<PodObservation> {
  if (podByUID(pods, podUID) === undefined) return { pod: undefined };
  const containers = await runtime.state(podUID, signal);
  // Read after the state: a pod that has just been deleted is not to be started.
  const pod = podByUID(pods, podUID);
  if (pod === undefined) return { pod };
  const verdicts = probes.verdicts(podUID);
  const asked = { shutdown: shutdown.forPods(), excess: emptyDirs.of(podUID) };
  return { pod, containers, verdicts, now: clock.now(), ...asked, pass: {} };
}
