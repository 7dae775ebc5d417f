/**
 * Whether the finalizer of a VolumeAttributesClass is put on, stays or goes. Pure. Source: docs/behaviour/controllers.md
 * Part D, "VAC protection".
 *
 *     not deleting: addFinalizer
 *     deleting:     cache shows no user ──► waitForCache ──► cache shows no user ──► removeFinalizer
 *
 * The claims and volumes of a whole cluster are too many to be listed live: the caches are given time to show those that
 * named the class before it was deleted. What names it later finds no class, and the resizer reports that.
 */
import { hasFinalizer, isDeleting, type Stored, type VolumeAttributesClass } from "@longshore/kube";

/** Keeps a class while claims or volumes name it. */
export const vacProtectionFinalizer = "kubernetes.io/vac-protection";

/** What is known about a class. */
export interface AttributesClassProtectionObservation {
  readonly attributesClass: Stored<VolumeAttributesClass>;
  /** A claim or volume of the caches names the class. */
  readonly isUsed: boolean;
  /** Milliseconds until the caches show what was stored before the deletion. */
  readonly cacheLagMs: number;
}

/** One action of the class protection. */
export type AttributesClassProtectionStep =
  | { readonly step: "addFinalizer" }
  | { readonly step: "waitForCache"; readonly ms: number }
  | { readonly step: "removeFinalizer" }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideAttributesClassProtection({
  attributesClass,
  isUsed,
  cacheLagMs,
}: AttributesClassProtectionObservation): AttributesClassProtectionStep {
  const isProtected = hasFinalizer(attributesClass, vacProtectionFinalizer);
  if (!isDeleting(attributesClass)) return { step: isProtected ? "settle" : "addFinalizer" };
  if (!isProtected || isUsed) return { step: "settle" };
  return cacheLagMs > 0 ? { step: "waitForCache", ms: cacheLagMs } : { step: "removeFinalizer" };
}
