/** Removes the finalizer from source claims once their snapshots are finished. */
import {
  isNotFound,
  type KubeEnv,
  type PersistentVolumeClaim,
  type ReconcileResult,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { snapshotClaimFinalizer, type VolumeSnapshot } from "@longshore/storage";

/** What the reconciler works with. */
export interface SourceClaimContext {
  readonly env: KubeEnv;
  readonly claim: (key: string) => Stored<PersistentVolumeClaim> | undefined;
  /** The snapshots that name the claim of this key as their source. */
  readonly snapshotsOf: (claimKey: string) => readonly Stored<VolumeSnapshot>[];
}

/**
 * One pass over the claim of this key: its finalizer goes once no snapshot of it is unfinished. A snapshot is in the
 * caches before its pass adds the finalizer.
 */
export async function reconcileSourceClaim(
  context: SourceClaimContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = context.claim(key);
  if (!claim?.metadata.finalizers?.includes(snapshotClaimFinalizer)) return settled;
  if (context.snapshotsOf(key).some(({ status }) => status?.readyToUse !== true)) return settled;
  const rest = claim.metadata.finalizers.filter((finalizer) => finalizer !== snapshotClaimFinalizer);
  try {
    await context.env.kube.update(resources.persistentVolumeClaims, withFinalizers(claim, rest), { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return settled;
}

/** The claim with these finalizers. It is written whole: the reference's rights have no patch of claims. */
export function withFinalizers(
  claim: Stored<PersistentVolumeClaim>,
  finalizers: readonly string[],
): Stored<PersistentVolumeClaim> {
  return { ...claim, metadata: { ...claim.metadata, finalizers: [...finalizers] } };
}
