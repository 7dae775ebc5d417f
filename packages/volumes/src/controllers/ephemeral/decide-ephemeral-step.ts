/**
 * The next claim that a pod with generic ephemeral volumes needs. Pure. Source: docs/behaviour/controllers.md Part D,
 * "Ephemeral".
 *
 *     for each ephemeral volume: no claim ──► createClaim      another's claim ──► report
 *
 * Invariant: a claim that the pod does not own is never touched, and never used: its data is not the pod's.
 */
import {
  isDeleting,
  isPodTerminal,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "@longshore/kube";
import { claimOfPodVolume, isClaimForPod } from "../attach-detach/build-pod-volume.ts";

/** What is known about a pod. */
export interface EphemeralObservation {
  readonly pod: Stored<Pod>;
  /** The claims that have the names of the pod's ephemeral volumes, by that name. */
  readonly claims: ReadonlyMap<string, Stored<PersistentVolumeClaim>>;
  /** Names of volumes whose event has been emitted in this pass. */
  readonly reported?: readonly string[];
}

/** One action of the ephemeral-volume controller. */
export type EphemeralStep =
  | { readonly step: "createClaim"; readonly claim: PersistentVolumeClaim }
  /** A claim of that name is in the way; its end wakes the pod. */
  | { readonly step: "report"; readonly volumeName: string; readonly message: string }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideEphemeralStep({ pod, claims, reported = [] }: EphemeralObservation): EphemeralStep {
  if (isDeleting(pod) || isPodTerminal(pod)) return { step: "settle" };
  for (const volume of pod.spec?.volumes ?? []) {
    const name = volume.ephemeral == null ? undefined : claimOfPodVolume(pod, volume)?.name;
    if (name === undefined) continue;
    const claim = claims.get(name);
    if (claim === undefined) return { step: "createClaim", claim: claimFor(pod, volume, name) };
    if (!isClaimForPod(claim, pod) && !reported.includes(volume.name)) {
      const message =
        `ephemeral volume ${volume.name}: PVC "${name}" was not created for pod "${pod.metadata.name}" ` +
        "(pod is not the owner): delete the claim, or rename the pod or the volume";
      return { step: "report", volumeName: volume.name, message };
    }
  }
  return { step: "settle" };
}

type PodVolume = NonNullable<NonNullable<Pod["spec"]>["volumes"]>[number];

/** The pod owns its claim, so that the garbage collector removes it with the pod. */
function claimFor(pod: Stored<Pod>, volume: PodVolume, name: string): PersistentVolumeClaim {
  const { metadata, spec } = volume.ephemeral?.volumeClaimTemplate ?? {};
  const { labels, annotations } = metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      ...(pod.metadata.namespace === undefined ? {} : { namespace: pod.metadata.namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [
        {
          apiVersion: "v1",
          kind: "Pod",
          name: pod.metadata.name,
          uid: pod.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    ...(spec === undefined ? {} : { spec }),
  };
}
