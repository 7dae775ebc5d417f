/** Which volume suits a claim. Pure. Source: docs/behaviour/controllers.md B3. */
import {
  isDeleting,
  labelSelectorMatches,
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseQuantity,
  type Quantity,
} from "@longshore/kube";
import { classOfClaim, classOfVolume } from "./annotations.ts";

/** Why a volume cannot be bound to a claim; undefined: it can. The capacity is part of it. */
export function mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (isDeleting(volume)) return "it is being deleted";
  if (capacityOf(volume).compare(requestOf(claim)) < 0) return "requested PV is too small";
  if (classOfVolume(volume) !== classOfClaim(claim)) return "storageClassName does not match";
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return "incompatible volumeMode";
  if (!accessModesSuffice(volume, claim)) return "incompatible accessMode";
  return undefined;
}

/**
 * The best volume for the claim: one that is bound to it beforehand, else the smallest that has enough,
 * those with the fewest access modes first.
 * @param delayBinding only volumes bound beforehand count: a scheduler chooses among the others
 */
export function bestVolume<V extends PersistentVolume>(
  volumes: readonly V[],
  claim: PersistentVolumeClaim,
  delayBinding: boolean,
): V | undefined {
  let best: V | undefined;
  for (const volume of volumes) {
    if (volume.spec?.claimRef != null) {
      if (isBoundTo(volume, claim) && mismatch(volume, claim) === undefined) return volume;
      continue;
    }
    if (delayBinding || volume.status?.phase !== "Available" || mismatch(volume, claim) !== undefined)
      continue;
    const selector = claim.spec?.selector;
    if (selector != null && !labelSelectorMatches(selector, volume.metadata?.labels ?? {})) continue;
    if (best === undefined || isBetter(volume, best)) best = volume;
  }
  return best;
}

/** Whether the volume's claimRef names this claim: the same name, and the same UID or none yet. */
export function isBoundTo(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const ref = volume.spec?.claimRef;
  if (ref == null) return false;
  if (ref.name !== claim.metadata?.name || ref.namespace !== claim.metadata?.namespace) return false;
  return ref.uid === undefined || ref.uid === "" || ref.uid === claim.metadata?.uid;
}

/** `Filesystem` unless said otherwise. */
export function volumeModeOf(object: PersistentVolume | PersistentVolumeClaim): string {
  return object.spec?.volumeMode ?? "Filesystem";
}

/** Capacity of a volume. */
export function capacityOf(volume: PersistentVolume): Quantity {
  return parseQuantity(volume.spec?.capacity?.storage ?? "0");
}

/** Size that a claim asks for. */
export function requestOf(claim: PersistentVolumeClaim): Quantity {
  return parseQuantity(claim.spec?.resources?.requests?.storage ?? "0");
}

function accessModesSuffice(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const modes = volume.spec?.accessModes ?? [];
  return (claim.spec?.accessModes ?? []).every((mode) => modes.includes(mode));
}

function isBetter(volume: PersistentVolume, than: PersistentVolume): boolean {
  const modes = (volume.spec?.accessModes ?? []).length - (than.spec?.accessModes ?? []).length;
  if (modes !== 0) return modes < 0;
  return capacityOf(volume).compare(capacityOf(than)) < 0;
}
