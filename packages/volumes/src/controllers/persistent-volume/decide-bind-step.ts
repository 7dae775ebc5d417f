/**
 * Binding a volume and a claim to each other: four writes, each left out when there is nothing to change, so that the
 * next pass continues after a failure. Pure. Source: docs/behaviour/controllers.md B4.
 *
 *     bindVolume ──► markVolumeBound ──► bindClaim ──► markClaimBound
 *
 * Invariants
 *  - The claimRef of the volume is written first, from the version that had none or this claim: of two claims that
 *    choose one volume, the second loses with a conflict before anything of it is written, and chooses again.
 *  - A claim whose claimRef is written is found again by it, so it never takes a second volume.
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { claimBoundTo, claimStatusOfBound, volumeBoundTo, volumeInPhase } from "./bound-objects.ts";

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

/** One write of a binding: the object as it is to be stored. */
export type BindStep =
  | { readonly step: "bindVolume"; readonly volume: Volume }
  | { readonly step: "markVolumeBound"; readonly volume: Volume }
  | { readonly step: "bindClaim"; readonly claim: Claim }
  | { readonly step: "markClaimBound"; readonly claim: Claim }
  | { readonly step: "settle" };

/** Decides on the next write. */
export function decideBindStep(volume: Volume, claim: Claim): BindStep {
  const bound = volumeBoundTo(volume, claim);
  if (bound !== volume) return { step: "bindVolume", volume: bound };
  const marked = volumeInPhase(volume, "Bound");
  if (marked !== volume) return { step: "markVolumeBound", volume: marked };
  const named = claimBoundTo(claim, volume.metadata.name);
  if (named !== claim) return { step: "bindClaim", claim: named };
  const finished = claimStatusOfBound(claim, volume);
  return finished === claim ? { step: "settle" } : { step: "markClaimBound", claim: finished };
}
