/**
 * The finalizer that keeps a volume until its disk is deleted in-tree. Pure. Source: docs/behaviour/controllers.md B5,
 * "Deletion protection"; Kubernetes KEP-2644.
 *
 * Without it an administrator who deletes a volume before its claim leaves the disk behind, whatever the reclaim policy
 * says. The external provisioner has a finalizer of its own: migration changes one for the other, and so does the way back.
 */
import {
  hasFinalizer,
  isDeleting,
  type PersistentVolume,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import {
  inTreeDeletionFinalizer,
  isDeletedWithClaim,
  isMadeInTree,
  provisionedByAnnotation,
  provisionerFinalizer,
  standsForInTreeFinalizer,
} from "@longshore/storage";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";

/** What says whether a volume is to have the finalizer. */
export interface DeletionProtection {
  readonly migration: Pick<MigratedPluginManager, "isMigrationEnabledForPlugin">;
  /** Gate `HonorPVReclaimPolicy`. */
  readonly isHonored: boolean;
}

/** The volume with its finalizers set right; the same object when they are. */
export function protectedVolume<V extends PersistentVolume>(volume: V, protection: DeletionProtection): V {
  return withoutLeftOver(withOwnFinalizer(volume, protection), protection);
}

function withOwnFinalizer<V extends PersistentVolume>(volume: V, protection: DeletionProtection): V {
  const isProtected = hasFinalizer(volume, inTreeDeletionFinalizer);
  if (mayHaveFinalizer(volume, protection) === isProtected) return volume;
  if (isProtected) return withoutFinalizer(volume, inTreeDeletionFinalizer);
  // The API server lets no finalizer be added to an object that is being deleted.
  return isDeleting(volume) ? volume : withFinalizer(volume, inTreeDeletionFinalizer);
}

/**
 * Back in-tree, the finalizer of an external provisioner goes, which may be gone itself. On a volume that is being deleted
 * it stands for the one that cannot be added any more, until the disk is deleted.
 */
function withoutLeftOver<V extends PersistentVolume>(volume: V, protection: DeletionProtection): V {
  if (!isMadeInTree(volume) || !protection.isHonored || !hasFinalizer(volume, provisionerFinalizer))
    return volume;
  if (isMigrated(volume, protection)) return volume;
  return standsForInTreeFinalizer(volume) ? volume : withoutFinalizer(volume, provisionerFinalizer);
}

/** Made by an in-tree plugin for a claim, to be deleted in-tree. */
function mayHaveFinalizer(volume: PersistentVolume, protection: DeletionProtection): boolean {
  if (!protection.isHonored || !isMadeInTree(volume)) return false;
  if (isMigrated(volume, protection)) {
    // One that is being deleted can get no other finalizer: without this one it would go, and its disk would stay. The
    // driver's provisioner takes it off once it has deleted the disk.
    const isKept = isDeleting(volume) && hasFinalizer(volume, inTreeDeletionFinalizer);
    return isKept && isDeletedWithClaim(volume);
  }
  return isDeletedWithClaim(volume);
}

function isMigrated({ metadata }: PersistentVolume, { migration }: DeletionProtection): boolean {
  return migration.isMigrationEnabledForPlugin(metadata?.annotations?.[provisionedByAnnotation] ?? "");
}

/** Whether a volume that is being deleted still has its disk deleted first. */
export function isDeletionAwaited(volume: PersistentVolume): boolean {
  return !isDeleting(volume) || isKeptForDisk(volume);
}

/** Whether a finalizer keeps the volume until its disk is deleted in-tree. */
export function isKeptForDisk(volume: PersistentVolume): boolean {
  if (hasFinalizer(volume, inTreeDeletionFinalizer)) return true;
  return isMadeInTree(volume) && hasFinalizer(volume, provisionerFinalizer);
}

/** The volume without what has kept it for its disk. */
export function releasedFromDisk<V extends PersistentVolume>(volume: V): V {
  const released = withoutFinalizer(volume, inTreeDeletionFinalizer);
  return isKeptForDisk(released) ? withoutFinalizer(released, provisionerFinalizer) : released;
}
