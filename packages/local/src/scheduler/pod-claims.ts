/** The claims of a pod, as the scheduler sees them. Pure. Source: docs/behaviour/controllers.md B7. */
import type { PersistentVolumeClaim, Pod, Stored } from "@longshore/kube";
import type { ClusterView } from "./cluster-view.ts";

/** A claim that a pod refers to; undefined: it does not exist. */
export interface PodClaim {
  readonly name: string;
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
}

/** Keys of the claims that a pod refers to, `namespace/name`. */
export function claimKeysOf(pod: Pod): readonly string[] {
  return claimNamesOf(pod).map((name) => `${namespaceOf(pod)}/${name}`);
}

/** The pod's claims, found or not, by claim name. */
export function claimsOfPod(view: ClusterView, pod: Pod): readonly PodClaim[] {
  return claimNamesOf(pod).map((name) => ({ name, claim: view.claim(namespaceOf(pod), name) }));
}

/** True when binding of the claim is complete: both sides are written. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (
    claim.spec?.volumeName !== undefined &&
    claim.metadata?.annotations?.["pv.kubernetes.io/bind-completed"] !== undefined
  );
}

function claimNamesOf(pod: Pod): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap(
    ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [],
  );
}

function namespaceOf(pod: Pod): string {
  return pod.metadata?.namespace ?? "default";
}
