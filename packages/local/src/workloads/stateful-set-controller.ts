/** Runs StatefulSets: keeps their pods and claims as `decideStatefulSetStep` wants them. */
import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeClient,
  keyOf,
  type Pod,
  refOf,
  refOfKey,
  resources,
  type SharedInformers,
  type StatefulSet,
  type Stored,
  settled,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import { claimsOfStatefulSet, decideStatefulSetStep, podOfStatefulSet } from "./stateful-set-step.ts";

/** What the workload controllers need. */
export interface WorkloadsEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly informers: SharedInformers;
}

/** Starts the StatefulSet controller. */
export function startStatefulSetController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const sets = env.informers.of(resources.statefulSets);
  const pods = env.informers.of(resources.pods);
  const queue = startWorkQueue(env, {
    name: "statefulset",
    workers: 2,
    reconcile: async (key, signal) => {
      await Promise.all([sets.synced(signal), pods.synced(signal)]);
      const set = sets.get(key);
      if (set !== undefined) await reconcileSet(env, set, podsOf(set, pods.list()), signal);
      return settled;
    },
  });
  const wake = (pod: Stored<Pod>) => {
    const owner = pod.metadata.ownerReferences?.find(
      (o) => o.controller === true && o.kind === "StatefulSet",
    );
    if (owner !== undefined) queue.add(`${pod.metadata.namespace}/${owner.name}`);
  };
  const unsubscribe = [
    sets.onChange({ added: (s) => queue.add(keyOf(s)), updated: (_, s) => queue.add(keyOf(s)) }),
    pods.onChange({ added: wake, updated: (_, pod) => wake(pod), deleted: (pod) => wake(pod) }),
  ];
  return {
    async stop() {
      for (const end of unsubscribe) end();
      await queue.stop();
    },
  };
}

async function reconcileSet(
  env: WorkloadsEnv,
  set: Stored<StatefulSet>,
  pods: readonly Stored<Pod>[],
  signal: AbortSignal,
): Promise<void> {
  const step = decideStatefulSetStep(set, pods);
  for (const pod of step.delete) {
    await env.kube.delete(resources.pods, refOf(pod), { uid: pod.metadata.uid, signal }).catch((error) => {
      if (!isConflict(error)) throw error; // Another pod of that name by now: not ours to delete.
    });
  }
  for (const ordinal of step.create) {
    for (const claim of claimsOfStatefulSet(set, ordinal)) {
      await unlessExists(env.kube.create(resources.persistentVolumeClaims, claim, { signal }));
    }
    await unlessExists(env.kube.create(resources.pods, podOfStatefulSet(set, ordinal), { signal }));
  }
  await writeStatus(env, set, step.status, signal);
}

async function writeStatus(
  env: WorkloadsEnv,
  set: Stored<StatefulSet>,
  counts: { readonly replicas: number; readonly readyReplicas: number },
  signal: AbortSignal,
): Promise<void> {
  const current = set.status;
  const observedGeneration = set.metadata.generation ?? 1;
  if (
    current?.replicas === counts.replicas &&
    (current.readyReplicas ?? 0) === counts.readyReplicas &&
    current.observedGeneration === observedGeneration
  ) {
    return;
  }
  const status = {
    ...counts,
    currentReplicas: counts.replicas,
    updatedReplicas: counts.replicas,
    availableReplicas: counts.readyReplicas,
    observedGeneration,
  };
  await env.kube
    .patch(
      resources.statefulSets,
      refOfKey(keyOf(set)),
      { type: "merge", body: { status } },
      { subresource: "status", signal },
    )
    .catch((error) => {
      if (!isNotFound(error)) throw error;
    });
}

function podsOf(set: Stored<StatefulSet>, pods: readonly Stored<Pod>[]): Stored<Pod>[] {
  return pods.filter((pod) => pod.metadata.ownerReferences?.some((o) => o.uid === set.metadata.uid) === true);
}

async function unlessExists(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error) => {
    if (!isAlreadyExists(error)) throw error;
  });
}
