/** From an entry of a pod's `spec.volumes` to a volume spec. Pure. Source: docs/behaviour/controllers.md A4. */
import {
  isPodTerminal,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
  type Volume,
} from "@longshore/kube";
import { specOfPersistentVolume, specOfVolume, type VolumeSpec } from "../../framework/volume-spec.ts";

/** Where claims and volumes are looked up. */
export interface VolumeLookup {
  claim(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined;
  persistentVolume(name: string): Stored<PersistentVolume> | undefined;
}

/** A claim by namespace and name. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
}

/** The result: the volume's spec, or why it has none. */
export type BuiltVolume =
  | { readonly kind: "spec"; readonly spec: VolumeSpec; readonly claim: ClaimRef | undefined }
  /** The volume cannot be named; what is known of it narrows down which attachment it could be. */
  | {
      readonly kind: "unbuildable";
      readonly reason: string;
      readonly claim: ClaimRef;
      /** The claim's volume; empty: the claim was never bound, so nothing of it can be attached. */
      readonly pvName: string | undefined;
    };

/** The claim behind a pod's volume, also that of a generic ephemeral one; undefined for an inline volume. */
export function claimOfPodVolume(pod: Pod, volume: Volume): ClaimRef | undefined {
  const namespace = pod.metadata?.namespace ?? "";
  if (volume.persistentVolumeClaim != null)
    return { namespace, name: volume.persistentVolumeClaim.claimName };
  if (volume.ephemeral != null) return { namespace, name: `${pod.metadata?.name ?? ""}-${volume.name}` };
  return undefined;
}

/** Whether the claim was made for an ephemeral volume of the pod: only then its data is the pod's. */
export function isClaimForPod(claim: PersistentVolumeClaim, pod: Pod): boolean {
  const owner = claim.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return owner !== undefined && owner.uid === pod.metadata?.uid;
}

/** Builds the spec of one volume of a pod, untranslated. */
export function buildPodVolume(pod: Pod, volume: Volume, lookup: VolumeLookup): BuiltVolume {
  const claim = claimOfPodVolume(pod, volume);
  if (claim === undefined) return { kind: "spec", spec: specOfVolume(volume), claim };
  const label = `"${claim.namespace}"/"${claim.name}"`;
  const unbuildable = (reason: string, pvName: string | undefined): BuiltVolume => ({
    kind: "unbuildable",
    reason,
    claim,
    pvName,
  });
  const pvc = lookup.claim(claim.namespace, claim.name);
  if (pvc === undefined) return unbuildable(`PVC ${label} does not exist`, undefined);
  const pvName = pvc.spec?.volumeName ?? "";
  if (volume.ephemeral != null && !isClaimForPod(pvc, pod)) {
    const reason = `PVC ${label} was not created for pod "${pod.metadata?.name}" (pod is not the owner)`;
    return unbuildable(reason, pvName);
  }
  if (pvc.status?.phase !== "Bound" || pvName === "") {
    return unbuildable(`PVC ${label} has non-bound phase (${pvc.status?.phase ?? ""}) or no volume`, pvName);
  }
  const pv = lookup.persistentVolume(pvName);
  if (pv === undefined) return unbuildable(`PV "${pvName}" of PVC ${label} does not exist`, pvName);
  if (pv.spec?.claimRef?.uid !== pvc.metadata.uid) {
    return unbuildable(`PV "${pvName}" is not bound to PVC ${label} (UID differs)`, pvName);
  }
  const readOnly = volume.persistentVolumeClaim?.readOnly === true;
  return { kind: "spec", spec: specOfPersistentVolume(pv, readOnly), claim };
}

/**
 * No container of the pod runs, and none will: its phase says so, or it is being deleted and none is running
 * (Kubernetes `volume/util`, IsPodTerminated). Source: docs/behaviour/volume-plugins.md 5.
 */
export function hasPodStopped(pod: Pod): boolean {
  if (isPodTerminal(pod)) return true;
  if (pod.metadata?.deletionTimestamp === undefined) return false;
  // No statuses count as no running container (docs/behaviour/volume-plugins.md 5).
  return (pod.status?.containerStatuses ?? []).every((status) => status.state?.running == null);
}
