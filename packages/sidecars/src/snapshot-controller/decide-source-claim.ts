/** When a claim of which snapshots are made is let go. Pure. */
import { hasFinalizer, type PersistentVolumeClaim, type Stored } from "@longshore/kube";
import { snapshotClaimFinalizer } from "@longshore/storage";

/** What is known of a claim of which snapshots are made. */
export interface ObservedSourceClaim {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** A snapshot of it is not ready yet. A snapshot is in the caches before its pass adds the finalizer. */
  readonly isInUse: boolean;
}

/** What one pass over it has to do. */
export type SourceClaimStep = { readonly step: "settle" } | { readonly step: "removeFinalizer" };

/** The next step: its finalizer goes once no snapshot of it is unfinished. */
export function decideSourceClaim({ claim, isInUse }: ObservedSourceClaim): SourceClaimStep {
  const isHeld = hasFinalizer(claim, snapshotClaimFinalizer);
  return { step: isHeld && !isInUse ? "removeFinalizer" : "settle" };
}
