/** The volume protection: a volume stays while it is bound. Source: docs/behaviour/controllers.md Part D. */
import {
  type Actions,
  forResource,
  type Informer,
  type KubeEnv,
  type PersistentVolume,
  refOf,
  resources,
  settled,
  startController,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  decideVolumeProtection,
  pvProtectionFinalizer,
  type VolumeProtectionObservation,
  type VolumeProtectionStep,
} from "./decide-volume-protection.ts";

/** Starts the controller; it works in the background until it is stopped. */
export function startVolumeProtection(env: KubeEnv, volumes: Informer<PersistentVolume>): Component {
  return startController<VolumeProtectionObservation, VolumeProtectionStep>(env, {
    name: "pvprotection",
    workers: 10,
    sources: [forResource(volumes)],
    observe(name) {
      const volume = volumes.get(name);
      return volume === undefined ? undefined : { volume };
    },
    decide: decideVolumeProtection,
    actions: volumeProtectionActions(env),
  });
}

function volumeProtectionActions({
  kube,
}: KubeEnv): Actions<VolumeProtectionObservation, VolumeProtectionStep> {
  const volumes = resources.persistentVolumes;
  return {
    async addFinalizer(_step, { volume }, { signal }) {
      await kube.update(volumes, withFinalizer(volume, pvProtectionFinalizer), { signal });
      return settled;
    },
    async readVolume(_step, observed, { signal }) {
      const volume = await kube.get(volumes, refOf(observed.volume), { signal });
      return { observed: { ...observed, live: { volume } } };
    },
    async removeFinalizer({ volume }, _observed, { signal }) {
      await kube.update(volumes, withoutFinalizer(volume, pvProtectionFinalizer), { signal });
      return settled;
    },
    settle: () => settled,
  };
}
