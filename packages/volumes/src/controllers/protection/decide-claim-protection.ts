/**
 * Whether the finalizer of a claim is put on, stays or goes. Pure. Source: docs/behaviour/controllers.md Part D,
 * "PVC protection".
 *
 *     not deleting: addFinalizer
 *     deleting:     cache shows no pod ──► listPods ──► readClaim ──► removeFinalizer
 *
 * Invariant: the finalizer only goes after a live list of pods, so that a pod that the cache does not show yet counts.
 */
import { hasFinalizer, isDeleting, type PersistentVolumeClaim, type Stored } from "@longshore/kube";

/** Keeps a claim while pods use it. */
export const pvcProtectionFinalizer = "kubernetes.io/pvc-protection";

/** What is known about a claim and its pods. */
export interface ClaimProtectionObservation {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** A scheduled pod of the cache uses the claim. */
  readonly isUsed: boolean;
  /** A scheduled pod of a live list uses it; undefined: not listed in this pass. */
  readonly isUsedLive?: boolean;
  /** The claim as it is stored now; undefined: not read in this pass. */
  readonly live?: { readonly claim: Stored<PersistentVolumeClaim> | undefined };
}

/** One action of the claim protection. */
export type ClaimProtectionStep =
  | { readonly step: "addFinalizer" }
  /** Lists the pods of the namespace. */
  | { readonly step: "listPods" }
  /** A pod that the cache does not show uses the claim: looks again when the cache may have followed. */
  | { readonly step: "waitForCache" }
  | { readonly step: "readClaim" }
  | { readonly step: "removeFinalizer"; readonly claim: Stored<PersistentVolumeClaim> }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideClaimProtection(observed: ClaimProtectionObservation): ClaimProtectionStep {
  const { claim, isUsed, isUsedLive, live } = observed;
  const isProtected = hasFinalizer(claim, pvcProtectionFinalizer);
  if (!isDeleting(claim)) return { step: isProtected ? "settle" : "addFinalizer" };
  if (!isProtected || isUsed) return { step: "settle" };
  if (isUsedLive === undefined) return { step: "listPods" };
  if (isUsedLive) return { step: "waitForCache" };
  if (live === undefined) return { step: "readClaim" };
  // Another claim of the same name: its own event runs this key again.
  if (live.claim === undefined || live.claim.metadata.uid !== claim.metadata.uid) return { step: "settle" };
  return hasFinalizer(live.claim, pvcProtectionFinalizer)
    ? { step: "removeFinalizer", claim: live.claim }
    : { step: "settle" };
}
