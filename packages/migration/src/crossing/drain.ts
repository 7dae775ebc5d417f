/**
 * Empties a node of pods by eviction, so that PodDisruptionBudgets are kept. Pods of DaemonSets and
 * mirror pods stay. Source: policy Eviction; spec migration-controllers.md C1.
 */
import {
  isConflict,
  isNotFound,
  isTooManyRequests,
  type KubeClient,
  type KubeObject,
  type Pod,
  refOf,
  resources,
  type Stored,
} from "@longshore/kube";
import { backoffMs, type Clock } from "@longshore/runtime";
import { leftByDrain } from "./preflight.ts";

/** What a drain needs. */
export interface DrainEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
}

const pollMs = 100;
const blockedBackoff = { initialMs: 250, maximumMs: 5000 };

/** Evicts until nothing that a drain takes is left on the node; `onWaiting` is told what it waits for. */
export async function drainNode(
  env: DrainEnv,
  nodeName: string,
  onWaiting: (what: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const policyVersion =
    (await env.kube.servedVersion(resources.podDisruptionBudgets, { signal })) ?? "v1beta1";
  let blocked = 0;
  for (;;) {
    const pods = await podsToDrain(env.kube, nodeName, signal);
    if (pods.length === 0) return;
    const refused: string[] = [];
    for (const pod of pods.filter((p) => p.metadata.deletionTimestamp === undefined)) {
      if (!(await evict(env.kube, pod, policyVersion, signal))) refused.push(nameOf(pod));
    }
    if (refused.length > 0) {
      onWaiting(`a disruption budget to let go of ${refused.join(", ")}`);
      await env.clock.sleep(backoffMs(blockedBackoff, ++blocked), signal);
    } else {
      blocked = 0;
      onWaiting(`${pods.length === 1 ? "pod" : "pods"} ${pods.map(nameOf).join(", ")} to end`);
      await env.clock.sleep(pollMs, signal);
    }
  }
}

/** Pods on the node that a drain takes. */
async function podsToDrain(kube: KubeClient, nodeName: string, signal: AbortSignal): Promise<Stored<Pod>[]> {
  const { items } = await kube.list(resources.pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
  return items.filter((pod) => leftByDrain(pod) === undefined);
}

/** Asks for the eviction; false when a disruption budget does not allow it now. */
async function evict(
  kube: KubeClient,
  pod: Stored<Pod>,
  policyVersion: string,
  signal: AbortSignal,
): Promise<boolean> {
  const eviction: KubeObject & { deleteOptions: object } = {
    apiVersion: `policy/${policyVersion}`,
    kind: "Eviction",
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace ?? "default" },
    deleteOptions: { preconditions: { uid: pod.metadata.uid } },
  };
  try {
    await kube.createSubresource(resources.pods, refOf(pod), "eviction", eviction, { signal });
    return true;
  } catch (error) {
    if (isTooManyRequests(error)) return false;
    // Gone, or another pod of that name by now: the next look at the node tells.
    if (isNotFound(error) || isConflict(error)) return true;
    throw error;
  }
}

function nameOf(pod: Stored<Pod>): string {
  return `${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;
}
