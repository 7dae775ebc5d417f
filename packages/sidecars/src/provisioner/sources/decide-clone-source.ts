/** When a claim that others were cloned from is let go (docs/behaviour/sidecars.md 2.3, point 8). Pure. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { isProtectedAndDeleted } from "./protect-source.ts";

/** What is known of a claim that others may be cloned from. */
export interface ObservedCloneSource {
  readonly source: Stored<PersistentVolumeClaim>;
  /** A claim that is cloned from it has no volume yet. */
  readonly isBeingCopied: boolean;
}

/** What one pass over it has to do. */
export type CloneSourceStep = { readonly step: "settle" } | { readonly step: "removeFinalizer" };

/** The next step. The end of the last clone wakes the source. */
export function decideCloneSource({ source, isBeingCopied: isUsed }: ObservedCloneSource): CloneSourceStep {
  return { step: isProtectedAndDeleted(source) && !isUsed ? "removeFinalizer" : "settle" };
}
