/**
 * The protection of VolumeAttributesClasses: a class stays while a claim or a volume names it. Source:
 * docs/behaviour/controllers.md Part D, "VAC protection".
 */
import {
  forResource,
  type Informer,
  type KubeEnv,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  settled,
  startController,
  type VolumeAttributesClass,
  watches,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  type AttributesClassProtectionObservation,
  type AttributesClassProtectionStep,
  decideAttributesClassProtection,
  vacProtectionFinalizer,
} from "./decide-attributes-class-protection.ts";

/** Time for the caches to show a claim or volume that was stored before the class was deleted, in milliseconds. */
const cacheLagMs = 5_000;

/** Index of claims and of volumes by the classes that they name. */
const byAttributesClassIndex = "attributesClass";

/** The caches of the class protection, with the indexes below. */
export interface AttributesClassProtectionCaches {
  readonly attributesClasses: Informer<VolumeAttributesClass>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
}

/** For the options of the informer of claims. */
export const claimsByAttributesClass = { [byAttributesClassIndex]: attributesClassesOfClaim };
/** For the options of the informer of volumes. */
export const volumesByAttributesClass = { [byAttributesClassIndex]: attributesClassesOfVolume };

/** Starts the controller, where the API server has the kind; it works in the background until it is stopped. */
export function startAttributesClassProtection(
  env: KubeEnv,
  { attributesClasses, claims, volumes }: AttributesClassProtectionCaches,
): Component {
  return startController<AttributesClassProtectionObservation, AttributesClassProtectionStep>(env, {
    name: "vacprotection",
    workers: 4,
    sources: [
      forResource(attributesClasses),
      watches(claims, attributesClassesOfClaim),
      watches(volumes, attributesClassesOfVolume),
    ],
    observe(name) {
      const attributesClass = attributesClasses.get(name);
      if (attributesClass === undefined) return undefined;
      const isUsed = [claims, volumes].some(
        (cache) => cache.byIndex(byAttributesClassIndex, name).length > 0,
      );
      return { attributesClass, isUsed, cacheLagMs: lagLeftMs(env, attributesClass) };
    },
    decide: decideAttributesClassProtection,
    actions: {
      async addFinalizer(_step, { attributesClass }, { signal }) {
        const after = withFinalizer(attributesClass, vacProtectionFinalizer);
        await env.kube.update(resources.volumeAttributesClasses, after, { signal });
        return settled;
      },
      waitForCache: ({ ms }) => ({ requeueAfterMs: ms }),
      async removeFinalizer(_step, { attributesClass }, { signal }) {
        const after = withoutFinalizer(attributesClass, vacProtectionFinalizer);
        await env.kube.update(resources.volumeAttributesClasses, after, { signal });
        return settled;
      },
      settle: () => settled,
    },
  });
}

/** A deletion of the future, as a clock that is ahead makes it, waits no longer than the lag. */
function lagLeftMs({ clock }: KubeEnv, { metadata }: VolumeAttributesClass): number {
  if (metadata?.deletionTimestamp === undefined) return 0;
  const sinceMs = clock.now().getTime() - Date.parse(metadata.deletionTimestamp);
  return Math.min(cacheLagMs, Math.max(0, cacheLagMs - sinceMs));
}

function attributesClassesOfClaim({ spec, status }: PersistentVolumeClaim): readonly string[] {
  return named([
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]);
}

function attributesClassesOfVolume({ spec }: PersistentVolume): readonly string[] {
  return named([spec?.volumeAttributesClassName]);
}

function named(names: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(names.filter((name) => name !== undefined && name !== ""))] as readonly string[];
}
