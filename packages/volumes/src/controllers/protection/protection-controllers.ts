/**
 * The protection controllers: a claim stays while a scheduled pod uses it, a volume while it is bound.
 * Source: docs/behaviour/controllers.md Part D.
 *
 * Invariant: the finalizer of a claim is only taken off after a live list of pods, so that a pod that
 * the cache has not seen yet still counts.
 */
import {
  isDeleting,
  type KubeEnv,
  type KubeObject,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Resource,
  refOfKey,
  resources,
  type SharedInformers,
  type Stored,
  settled,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import { type Component, stopAll, TaskGroup } from "@longshore/runtime";
import { claimOfPodVolume, isPodTerminated } from "../attach-detach/pod-volume-spec.ts";

/** Keeps a claim while pods use it. */
export const pvcProtectionFinalizer = "kubernetes.io/pvc-protection";
/** Keeps a volume while it is bound. */
export const pvProtectionFinalizer = "kubernetes.io/pv-protection";

/** The seams of the controllers. */
export type ProtectionEnv = KubeEnv & { readonly informers?: SharedInformers };

/** Starts both controllers; they work in the background until they are stopped. */
export function startProtectionControllers(given: ProtectionEnv): Component {
  const tasks = new TaskGroup((error) => given.logger.error("protection controllers failed", { error }));
  const parts: Component[] = [];
  const informers = given.informers ?? sharedInformers(given);
  if (given.informers === undefined) parts.push(informers);
  const env = trackWrites(given, informers);
  tasks.spawn(async (signal) => {
    const claims = informers.of(resources.persistentVolumeClaims);
    const volumes = informers.of(resources.persistentVolumes);
    const pods = informers.of(resources.pods);
    await Promise.all([claims, volumes, pods].map((cache) => cache.synced(signal)));

    const claimQueue = startWorkQueue(env, {
      name: "pvcprotection",
      reconcile: async (key, within) => {
        const claim = claims.get(key);
        if (claim === undefined) return settled;
        if (!isDeleting(claim)) {
          await addFinalizer(env, resources.persistentVolumeClaims, claim, pvcProtectionFinalizer, within);
        } else if (hasFinalizer(claim, pvcProtectionFinalizer) && !isUsed(claim, pods.list())) {
          const live = await env.kube.list(resources.pods, {
            namespace: claim.metadata.namespace ?? "",
            signal: within,
          });
          if (!isUsed(claim, live.items)) {
            await removeFinalizer(
              env,
              resources.persistentVolumeClaims,
              claim,
              pvcProtectionFinalizer,
              within,
            );
          }
        }
        return settled;
      },
    });
    const volumeQueue = startWorkQueue(env, {
      name: "pvprotection",
      reconcile: async (name, within) => {
        const volume = volumes.get(name);
        if (volume === undefined) return settled;
        if (!isDeleting(volume)) {
          await addFinalizer(env, resources.persistentVolumes, volume, pvProtectionFinalizer, within);
        } else if (volume.status?.phase !== "Bound") {
          await removeFinalizer(env, resources.persistentVolumes, volume, pvProtectionFinalizer, within);
        }
        return settled;
      },
    });
    const addClaim = (claim: PersistentVolumeClaim) => claimQueue.add(keyOf(claim));
    const addVolume = (volume: PersistentVolume) => volumeQueue.add(keyOf(volume));
    const addClaimsOf = (pod: Pod) => {
      for (const key of claimsOf(pod)) if (isDeleting(claims.get(key) ?? {})) claimQueue.add(key);
    };
    const ends = [
      claims.onChange({ added: addClaim, updated: (_before, after) => addClaim(after) }),
      volumes.onChange({ added: addVolume, updated: (_before, after) => addVolume(after) }),
      pods.onChange({
        updated: (_before, after) => {
          if (isPodTerminated(after)) addClaimsOf(after);
        },
        deleted: addClaimsOf,
      }),
    ];
    parts.push(claimQueue, volumeQueue, {
      stop: async () => {
        for (const end of ends) end();
      },
    });
  });
  return {
    async stop() {
      await tasks.stop();
      await stopAll(parts);
    },
  };
}

/** Keys of the claims that a pod refers to. */
function claimsOf(pod: Pod): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const claim = claimOfPodVolume(pod, volume);
    return claim === undefined ? [] : [`${claim.namespace}/${claim.name}`];
  });
}

/**
 * Whether a scheduled pod uses the claim, even one that has finished; a generic ephemeral reference
 * counts only until the kubelet is done with the pod.
 */
export function isUsed(claim: PersistentVolumeClaim, pods: readonly Pod[]): boolean {
  const { namespace, name } = claim.metadata ?? {};
  return pods.some((pod) => {
    if (pod.metadata?.namespace !== namespace || (pod.spec?.nodeName ?? "") === "") return false;
    return (pod.spec?.volumes ?? []).some((volume) => {
      if (claimOfPodVolume(pod, volume)?.name !== name) return false;
      return volume.ephemeral == null || !isPodTerminated(pod);
    });
  });
}

function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata?.finalizers?.includes(finalizer) ?? false;
}

async function addFinalizer<T extends KubeObject>(
  env: KubeEnv,
  resource: Resource<T>,
  object: Stored<T>,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  if (hasFinalizer(object, finalizer)) return;
  const finalizers = [...(object.metadata.finalizers ?? []), finalizer];
  await env.kube.update(resource, { ...object, metadata: { ...object.metadata, finalizers } }, { signal });
}

async function removeFinalizer<T extends KubeObject>(
  env: KubeEnv,
  resource: Resource<T>,
  object: Stored<T>,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  if (!hasFinalizer(object, finalizer)) return;
  const live = await env.kube.get(resource, refOfKey(keyOf(object)), { signal });
  if (live === undefined || live.metadata.uid !== object.metadata.uid) return;
  const finalizers = (live.metadata.finalizers ?? []).filter((name) => name !== finalizer);
  await env.kube.update(resource, { ...live, metadata: { ...live.metadata, finalizers } }, { signal });
}
