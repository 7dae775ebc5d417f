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
  if (!attributesClassSuits(volume, claim)) return "volumeAttributesClassName does not match";
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return "incompatible volumeMode";
  if (!accessModesSuffice(volume, claim)) return "incompatible accessMode";
  return undefined;
}

/**
 * The best volume for the claim: one whose claimRef names it, else the first that suits of those that no claim has.
 * @param named volumes whose claimRef names a claim of this name
 * @param available volumes that no claim has, the best first (`available-volumes.ts`); none where binding is delayed
 */
export function bestVolume<V extends PersistentVolume>(
  claim: PersistentVolumeClaim,
  named: Iterable<V>,
  available: Iterable<V>,
): V | undefined {
  for (const volume of named) {
    if (isBoundTo(volume, claim) && mismatch(volume, claim) === undefined) return volume;
  }
  const selector = claim.spec?.selector;
  for (const volume of available) {
    if (mismatch(volume, claim) !== undefined) continue;
    if (selector == null || labelSelectorMatches(selector, volume.metadata?.labels ?? {})) return volume;
  }
  return undefined;
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

/** One that was made for the claim is the claim's in any case: the resizer gives it the attributes that it lacks. */
function attributesClassSuits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const uid = volume.spec?.claimRef?.uid ?? "";
  if (uid !== "" && uid === claim.metadata?.uid) return true;
  return (volume.spec?.volumeAttributesClassName ?? "") === (claim.spec?.volumeAttributesClassName ?? "");
}

function accessModesSuffice(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const modes = volume.spec?.accessModes ?? [];
  return (claim.spec?.accessModes ?? []).every((mode) => modes.includes(mode));
}
