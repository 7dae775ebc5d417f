/** The caches of the attach/detach controller and their indexes. */
import {
  type Informer,
  type InformerHandler,
  type KubeObject,
  resources,
  type SharedInformers,
} from "@longshore/kube";
import { type AttachDetachCaches, cacheIndexes } from "./attach-detach-context.ts";
import { claimOfPodVolume } from "./build-pod-volume.ts";

/** Starts them, or finds them among those that the process shares. */
export function startCaches(informers: SharedInformers): AttachDetachCaches {
  return {
    pods: informers.of(resources.pods, {
      indexes: {
        [cacheIndexes.podsByNode]: (pod) => (pod.spec?.nodeName === undefined ? [] : [pod.spec.nodeName]),
        [cacheIndexes.podsByClaim]: (pod) =>
          (pod.spec?.volumes ?? []).flatMap((volume) => {
            const claim = claimOfPodVolume(pod, volume);
            return claim === undefined ? [] : [`${claim.namespace}/${claim.name}`];
          }),
      },
    }),
    nodes: informers.of(resources.nodes),
    claims: informers.of(resources.persistentVolumeClaims),
    volumes: informers.of(resources.persistentVolumes),
    csiNodes: informers.of(resources.csiNodes),
    csiDrivers: informers.of(resources.csiDrivers),
    attachments: informers.of(resources.volumeAttachments),
  };
}

/**
 * Follows what changes from now on, without what is there already: at its start the controller wakes every pod, and every
 * disk that is attached, itself. @returns a function that ends it
 */
export function onLaterChange<T extends KubeObject>(
  cache: Informer<T>,
  handler: InformerHandler<T>,
): () => void {
  let isReplay = true;
  const end = cache.onChange({
    ...handler,
    added: (object, how) => (isReplay ? undefined : handler.added?.(object, how)),
  });
  isReplay = false;
  return end;
}
