/**
 * Volumes and claims as the controller wants them. Pure: each function returns the same object when there is nothing to
 * change. Source: docs/behaviour/controllers.md B4, B5.
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { bindCompletedAnnotation, boundByControllerAnnotation, withAnnotation } from "./annotations.ts";
import { capacityOf } from "./match-volume.ts";

/** Phases of a volume that the controller sets. */
export type VolumePhase = "Available" | "Bound" | "Released" | "Failed";

/** The volume with a full claimRef. */
export function volumeBoundTo<V extends PersistentVolume>(
  volume: V,
  claim: Stored<PersistentVolumeClaim>,
): V {
  const ref = volume.spec?.claimRef;
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  if (ref?.uid === uid && ref.name === name && ref.namespace === namespace) return volume;
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    name,
    ...(namespace === undefined ? {} : { namespace }),
    uid,
    resourceVersion,
  };
  const bound = { ...volume, spec: { ...volume.spec, claimRef } };
  return ref == null ? withAnnotation(bound, boundByControllerAnnotation, "yes") : bound;
}

/** The claim with its volume's name and the mark that binding is finished. */
export function claimBoundTo<C extends PersistentVolumeClaim>(claim: C, volumeName: string): C {
  const named =
    claim.spec?.volumeName === volumeName
      ? claim
      : withAnnotation({ ...claim, spec: { ...claim.spec, volumeName } }, boundByControllerAnnotation, "yes");
  return withAnnotation(named, bindCompletedAnnotation, "yes");
}

/**
 * The claim's status once it is bound. Capacity and class of attributes are only taken over when it becomes bound: from
 * then on they say what the resizer has done. Without the class it would modify every new volume once more.
 */
export function claimStatusOfBound<C extends PersistentVolumeClaim>(claim: C, volume: PersistentVolume): C {
  const { status = {} } = claim;
  const accessModes = [...(volume.spec?.accessModes ?? [])];
  const sameModes =
    status.accessModes?.length === accessModes.length &&
    accessModes.every((mode, index) => status.accessModes?.[index] === mode);
  if (status.phase === "Bound") {
    return sameModes ? claim : { ...claim, status: { ...status, accessModes } };
  }
  const { currentVolumeAttributesClassName: _, ...rest } = status;
  const attributesClass = volume.spec?.volumeAttributesClassName ?? "";
  const taken = attributesClass === "" ? {} : { currentVolumeAttributesClassName: attributesClass };
  const capacity = { ...status.capacity, storage: capacityOf(volume).toString() };
  return { ...claim, status: { ...rest, phase: "Bound", accessModes, capacity, ...taken } };
}

/** The volume in this phase, with the reason where there is one. */
export function volumeInPhase<V extends PersistentVolume>(
  volume: V,
  phase: VolumePhase,
  message?: string,
): V {
  if (volume.status?.phase === phase && (volume.status.message ?? "") === (message ?? "")) return volume;
  const { message: _, ...status } = volume.status ?? {};
  return { ...volume, status: { ...status, phase, ...(message === undefined ? {} : { message }) } };
}

/** The claim in the phase of one that is not bound. */
export function claimInPhase<C extends PersistentVolumeClaim>(claim: C, phase: "Pending" | "Lost"): C {
  if (claim.status?.phase === phase) return claim;
  const {
    capacity: _,
    accessModes: __,
    currentVolumeAttributesClassName: ___,
    ...status
  } = claim.status ?? {};
  return { ...claim, status: { ...status, phase } };
}

/** The volume without its claim: all of the claimRef goes if the controller had put it there, else only its UID. */
export function unboundVolume<V extends PersistentVolume>(volume: V): V {
  const { claimRef, ...spec } = volume.spec ?? {};
  const { uid: _, resourceVersion: __, ...userRef } = claimRef ?? {};
  return volume.metadata?.annotations?.[boundByControllerAnnotation] === undefined
    ? { ...volume, spec: { ...spec, claimRef: userRef } }
    : withAnnotation({ ...volume, spec }, boundByControllerAnnotation, undefined);
}
