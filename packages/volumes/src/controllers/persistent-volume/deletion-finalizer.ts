/**
 * The finalizer that keeps a volume until its disk is deleted in-tree. Pure. Source: docs/behaviour/controllers.md B5,
 * "Deletion protection"; Kubernetes KEP-2644.
 *
 * Without it an administrator who deletes a volume before its claim leaves the disk behind, whatever the reclaim policy
 * says. The external provisioner has a finalizer of its own: migration changes one for the other.
 */
import {
  hasFinalizer,
  isDeleting,
  type PersistentVolume,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import { provisionedByAnnotation } from "@longshore/storage";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";

/** Keeps a volume of an in-tree plugin until its disk is deleted. */
export const inTreeDeletionFinalizer = "kubernetes.io/pv-controller";

/** What says whether a volume is to have the finalizer. */
export interface DeletionProtection {
  readonly migration: Pick<MigratedPluginManager, "isMigrationEnabledForPlugin">;
  /** Gate `HonorPVReclaimPolicy`. */
  readonly isHonored: boolean;
}

/** The volume with its finalizer set right; the same object when it is. */
export function protectedVolume<V extends PersistentVolume>(volume: V, protection: DeletionProtection): V {
  const isProtected = hasFinalizer(volume, inTreeDeletionFinalizer);
  if (mayHaveFinalizer(volume, protection) === isProtected) return volume;
  if (isProtected) return withoutFinalizer(volume, inTreeDeletionFinalizer);
  // The API server lets no finalizer be added to an object that is being deleted.
  return isDeleting(volume) ? volume : withFinalizer(volume, inTreeDeletionFinalizer);
}

/** Made by an in-tree plugin for a claim, to be deleted in-tree. */
function mayHaveFinalizer(volume: PersistentVolume, { migration, isHonored }: DeletionProtection): boolean {
  const { metadata, spec } = volume;
  const provisioner = metadata?.annotations?.[provisionedByAnnotation];
  if (!isHonored || provisioner === undefined || !provisioner.startsWith("kubernetes.io/")) return false;
  if (migration.isMigrationEnabledForPlugin(provisioner)) {
    // One that is being deleted can get no other finalizer: without this one it would go, and its disk would stay.
    return isDeleting(volume) && hasFinalizer(volume, inTreeDeletionFinalizer);
  }
  return spec?.persistentVolumeReclaimPolicy === "Delete" && (spec.claimRef?.uid ?? "") !== "";
}

/** Whether a volume that is being deleted still has its disk deleted first. */
export function isDeletionAwaited(volume: PersistentVolume): boolean {
  return !isDeleting(volume) || hasFinalizer(volume, inTreeDeletionFinalizer);
}
