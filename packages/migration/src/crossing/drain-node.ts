/**
 * Empties a node of pods by eviction, so that PodDisruptionBudgets are kept. Pods of DaemonSets and
 * mirror pods stay. The node is kept cordoned: where its cordon was lifted meanwhile, the pods come back as fast as they are evicted.
 * Source: policy Eviction; docs/behaviour/migration-controllers.md C1.
 */
import {
  isConflict,
  isNotFound,
  isTooManyRequests,
  KubeApiError,
  type KubeClient,
  type KubeObject,
  type Pod,
  refOf,
  resources,
  type Stored,
} from "@longshore/kube";
import { backoffMs, type Clock } from "@longshore/runtime";
import { cordon } from "./cordon.ts";
import { listBudgets } from "./list-budgets.ts";
import { leftByDrain } from "./pod-facts.ts";
import { drainWait } from "./waits.ts";
import type { OnWaiting } from "./watch-step.ts";

/** What a drain needs. */
export interface DrainEnv {
  readonly clock: Clock;
  readonly kube: KubeClient;
}

const pollMs = 100;
const evictionBackoff = { initialMs: 250, maximumMs: 5000 };

/**
 * Evicts until no pod that a drain takes is left on the node; `onWaiting` receives what it waits for.
 *
 * @param why for what the node is cordoned, see {@link cordon}
 */
export async function drainNode(
  env: DrainEnv,
  nodeName: string,
  why: string,
  onWaiting: OnWaiting,
  signal: AbortSignal,
): Promise<void> {
  const policyVersion =
    (await env.kube.servedVersion(resources.podDisruptionBudgets, { signal })) ?? "v1beta1";
  let rounds = 0;
  for (;;) {
    const pods = await podsToDrain(env.kube, nodeName, signal);
    if (pods.length === 0) return;
    const running = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (running.length > 0) await cordon(env.kube, nodeName, why, signal);
    const refused = new Map<string, string>();
    for (const pod of running) {
      const refusal = await evict(env.kube, pod, policyVersion, signal);
      if (refusal !== undefined) refused.set(pod.metadata.uid, refusal);
    }
    const budgets = refused.size === 0 ? [] : await listBudgets(env.kube, signal);
    onWaiting(drainWait(pods, refused, budgets, env.clock.now()));
    if (running.length > 0) rounds++;
    // Each eviction costs a request, so rounds with refusals, or with pods that have come since, back off; waiting costs one list.
    const isToWait = running.length === 0 || (rounds === 1 && refused.size === 0);
    await env.clock.sleep(isToWait ? pollMs : backoffMs(evictionBackoff, rounds), signal);
  }
}

/** Pods on the node that a drain takes. */
async function podsToDrain(kube: KubeClient, nodeName: string, signal: AbortSignal): Promise<Stored<Pod>[]> {
  const { items } = await kube.list(resources.pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
  return items.filter((pod) => leftByDrain(pod) === undefined);
}

/** Asks for the eviction; returns the reason where the server does not allow it now. */
async function evict(
  kube: KubeClient,
  pod: Stored<Pod>,
  policyVersion: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const eviction: KubeObject & { deleteOptions: object } = {
    apiVersion: `policy/${policyVersion}`,
    kind: "Eviction",
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace ?? "default" },
    // By UID: a pod that has come under this name since must not be evicted in its place.
    deleteOptions: { preconditions: { uid: pod.metadata.uid } },
  };
  try {
    await kube.createSubresource(resources.pods, refOf(pod), "eviction", eviction, { signal });
    return undefined;
  } catch (error) {
    // A pod of two budgets is refused with 500; a server that cannot serve fails the look at the budgets too.
    if (error instanceof KubeApiError && (isTooManyRequests(error) || error.code === 500)) {
      return error.status.details?.causes?.[0]?.message ?? error.message;
    }
    // Gone, or another pod of that name by now: the next listing of the node's pods decides.
    if (isNotFound(error) || isConflict(error)) return undefined;
    throw error;
  }
}
