/** The claims of a pod, as the scheduler sees them. Pure. Source: docs/behaviour/controllers.md B7. */
import type { PersistentVolumeClaim, Pod, Stored, Volume } from "@longshore/kube";
import { claimOfPodVolume, isClaimForPod } from "@longshore/volumes";
import type { ClusterView } from "./cluster-view.ts";

/** A claim that a pod refers to; undefined: it does not exist. */
export interface PodClaim {
  readonly name: string;
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
  /** Why the pod cannot be scheduled with it, whatever the node. */
  readonly problem: string | undefined;
}

/** Keys of the claims that a pod refers to, `namespace/name`; those of its generic ephemeral volumes among them. */
export function claimKeysOf(pod: Pod): readonly string[] {
  return claimVolumesOf(pod).map(({ name }) => `${namespaceOf(pod)}/${name}`);
}

/** The pod's claims, found or not, by claim name. */
export function claimsOfPod(view: ClusterView, pod: Pod): readonly PodClaim[] {
  return claimVolumesOf(pod).map(({ name, volume }) => {
    const claim = view.claim(namespaceOf(pod), name);
    return { name, claim, problem: problemOf(pod, volume, name, claim) };
  });
}

/** The claim of one volume of the pod, if it has one and it exists. */
export function claimOfVolume(
  view: ClusterView,
  pod: Pod,
  volume: Volume,
): Stored<PersistentVolumeClaim> | undefined {
  const name = claimOfPodVolume(pod, volume)?.name;
  return name === undefined ? undefined : view.claim(namespaceOf(pod), name);
}

/** True when binding of the claim is complete: both sides are written. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (
    claim.spec?.volumeName !== undefined &&
    claim.metadata?.annotations?.["pv.kubernetes.io/bind-completed"] !== undefined
  );
}

/** The namespace of a pod. */
export function namespaceOf(pod: Pod): string {
  return pod.metadata?.namespace ?? "default";
}

function problemOf(
  pod: Pod,
  volume: Volume,
  name: string,
  claim: Stored<PersistentVolumeClaim> | undefined,
): string | undefined {
  if (volume.ephemeral == null) {
    if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
    return claim.metadata.deletionTimestamp === undefined
      ? undefined
      : `persistentvolumeclaim "${name}" is being deleted`;
  }
  if (claim === undefined) {
    return `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`;
  }
  return isClaimForPod(claim, pod)
    ? undefined
    : `PVC "${name}" was not created for pod "${pod.metadata?.name}" (pod is not the owner)`;
}

function claimVolumesOf(pod: Pod): readonly { readonly name: string; readonly volume: Volume }[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const name = claimOfPodVolume(pod, volume)?.name;
    return name === undefined ? [] : [{ name, volume }];
  });
}
