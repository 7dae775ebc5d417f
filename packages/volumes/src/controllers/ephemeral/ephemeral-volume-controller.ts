/**
 * The ephemeral-volume controller: makes the claims of pods' generic ephemeral volumes. Source:
 * docs/behaviour/controllers.md Part D, "Ephemeral".
 *
 * A claim is removed by the garbage collector, once its pod is gone.
 */
import {
  type ControllerEnv,
  controllerScope,
  createEventRecorder,
  type EventRecorder,
  type Informer,
  isAlreadyExists,
  type KubeEnv,
  keyOf,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type Source,
  type Stored,
  settled,
  startController,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { claimOfPodVolume } from "../attach-detach/build-pod-volume.ts";
import { podsByClaim, podsByClaimIndex } from "../pods-by-claim.ts";
import {
  decideEphemeralStep,
  type EphemeralObservation,
  type EphemeralStep,
} from "./decide-ephemeral-step.ts";

/** The seams of the controller. */
export type EphemeralVolumeEnv = ControllerEnv;

interface Caches {
  readonly pods: Informer<Pod>;
  readonly claims: Informer<PersistentVolumeClaim>;
}

/** Starts the controller; it works in the background until it is stopped. */
export function startEphemeralVolumeController(given: EphemeralVolumeEnv): Component {
  const { scope, env } = controllerScope(given, "ephemeral-volume controller");
  const caches: Caches = {
    claims: env.informers.of(resources.persistentVolumeClaims),
    pods: env.informers.of(resources.pods, { indexes: podsByClaim }),
  };
  const events = createEventRecorder(env, { component: "ephemeral_volume" });
  scope.own(events, startOn(env, caches, events));
  return scope;
}

function startOn(env: KubeEnv, caches: Caches, events: EventRecorder): Component {
  return startController<EphemeralObservation, EphemeralStep>(env, {
    name: "ephemeralvolume",
    workers: 10,
    sources: sourcesOf(caches),
    observe: (key) => observe(caches, key),
    decide: decideEphemeralStep,
    actions: {
      async createClaim({ claim }, observed, { signal }) {
        try {
          const stored = await env.kube.create(resources.persistentVolumeClaims, claim, { signal });
          return { observed: withClaim(observed, stored) };
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
          return settled; // The cache is about to show the claim, and that wakes the pod.
        }
      },
      report({ volumeName, message }, observed) {
        events.event({ ...observed.pod, apiVersion: "v1", kind: "Pod" }, "Warning", "FailedBinding", message);
        return { observed: { ...observed, reported: [...(observed.reported ?? []), volumeName] } };
      },
      settle: () => settled,
    },
  });
}

/** Pods when they come, and those whose claim comes or goes. */
function sourcesOf({ pods, claims }: Caches): readonly Source[] {
  const usersOf = (claim: Stored<PersistentVolumeClaim>) =>
    pods.byIndex(podsByClaimIndex, keyOf(claim)).filter(hasEphemeralVolume).map(keyOf);
  return [
    watches(pods, (pod) => (hasEphemeralVolume(pod) ? [keyOf(pod)] : []), {
      changed: () => false, // The volumes of a pod never change.
      deleted: () => [],
    }),
    watches(claims, usersOf, { changed: () => false }),
  ];
}

function hasEphemeralVolume(pod: Pod): boolean {
  return (pod.spec?.volumes ?? []).some(({ ephemeral }) => ephemeral != null);
}

function observe({ pods, claims }: Caches, key: string): EphemeralObservation | undefined {
  const pod = pods.get(key);
  if (pod === undefined) return undefined;
  const found = new Map<string, Stored<PersistentVolumeClaim>>();
  for (const volume of pod.spec?.volumes ?? []) {
    const ref = volume.ephemeral == null ? undefined : claimOfPodVolume(pod, volume);
    const claim = ref === undefined ? undefined : claims.get(`${ref.namespace}/${ref.name}`);
    if (claim !== undefined) found.set(claim.metadata.name, claim);
  }
  return { pod, claims: found };
}

function withClaim(
  observed: EphemeralObservation,
  claim: Stored<PersistentVolumeClaim>,
): EphemeralObservation {
  return { ...observed, claims: new Map(observed.claims).set(claim.metadata.name, claim) };
}
