/** Lets go of the claims of which snapshots were being made. */
import {
  isConflict,
  isNotFound,
  type KubeEnv,
  type PersistentVolumeClaim,
  type ReconcileResult,
  refOfKey,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { snapshotClaimFinalizer, type VolumeSnapshot } from "@longshore/storage";
import { removeFinalizerPatch } from "../common/finalizers.ts";

/** What the reconciler works with. */
export interface SourceClaimContext {
  readonly env: KubeEnv;
  readonly claim: (key: string) => Stored<PersistentVolumeClaim> | undefined;
  /** The snapshots that name the claim of this key as their source. */
  readonly snapshotsOf: (claimKey: string) => readonly Stored<VolumeSnapshot>[];
}

/**
 * One pass over the claim of this key: its finalizer goes once no snapshot of it is unfinished. Whoever puts it there
 * has its snapshot in the caches before.
 */
export async function reconcileSourceClaim(
  context: SourceClaimContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = context.claim(key);
  if (!claim?.metadata.finalizers?.includes(snapshotClaimFinalizer)) return settled;
  if (context.snapshotsOf(key).some(({ status }) => status?.readyToUse !== true)) return settled;
  const body = removeFinalizerPatch(claim.metadata.finalizers, snapshotClaimFinalizer);
  try {
    const patch = { type: "json", body } as const;
    await context.env.kube.patch(resources.persistentVolumeClaims, refOfKey(key), patch, { signal });
  } catch (error) {
    if (isConflict(error)) return { requeueAfterMs: 1000 };
    if (!isNotFound(error)) throw error;
  }
  return settled;
}
