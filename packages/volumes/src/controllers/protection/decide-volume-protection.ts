/**
 * Whether the finalizer of a volume is put on, stays or goes. Pure. Source: docs/behaviour/controllers.md Part D,
 * "PV protection".
 *
 *     not deleting: addFinalizer
 *     deleting:     not Bound in the cache ──► readVolume ──► not Bound ──► removeFinalizer
 */
import { hasFinalizer, isDeleting, type PersistentVolume, type Stored } from "@longshore/kube";

/** Keeps a volume while it is bound. */
export const pvProtectionFinalizer = "kubernetes.io/pv-protection";

/** What is known about a volume. */
export interface VolumeProtectionObservation {
  readonly volume: Stored<PersistentVolume>;
  /** The volume as it is stored now; undefined: not read in this pass. */
  readonly live?: { readonly volume: Stored<PersistentVolume> | undefined };
}

/** One action of the volume protection. */
export type VolumeProtectionStep =
  | { readonly step: "addFinalizer" }
  | { readonly step: "readVolume" }
  | { readonly step: "removeFinalizer"; readonly volume: Stored<PersistentVolume> }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideVolumeProtection(observed: VolumeProtectionObservation): VolumeProtectionStep {
  const { volume, live } = observed;
  const isProtected = hasFinalizer(volume, pvProtectionFinalizer);
  if (!isDeleting(volume)) return { step: isProtected ? "settle" : "addFinalizer" };
  if (!isProtected || isBound(volume)) return { step: "settle" };
  if (live === undefined) return { step: "readVolume" };
  if (live.volume === undefined || live.volume.metadata.uid !== volume.metadata.uid)
    return { step: "settle" };
  const isFree = hasFinalizer(live.volume, pvProtectionFinalizer) && !isBound(live.volume);
  return isFree ? { step: "removeFinalizer", volume: live.volume } : { step: "settle" };
}

function isBound(volume: PersistentVolume): boolean {
  return volume.status?.phase === "Bound";
}
