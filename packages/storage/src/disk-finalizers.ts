/**
 * The two finalizers that keep a volume until its disk is deleted: one in-tree, one of the external provisioner. To an object
 * that is being deleted none can be added, so on such a volume either of them stands for the other, for the component
 * that deletes the disk now. Pure. Source: docs/behaviour/controllers.md B5, "Deletion protection"; docs/decisions/0027-volumes-that-change-hands-while-they-are-deleted.md.
 */
import { hasFinalizer, isDeleting, type PersistentVolume } from "@longshore/kube";
import { inTreeDeletionFinalizer, provisionedByAnnotation, provisionerFinalizer } from "./well-known.ts";

/** Whether an in-tree plugin made the volume, or its driver in place of it. */
export function isMadeInTree({ metadata }: PersistentVolume): boolean {
  return metadata?.annotations?.[provisionedByAnnotation]?.startsWith("kubernetes.io/") === true;
}

/** Whether the disk goes when the volume's claim has gone: policy Delete, and a claim. */
export function isDeletedWithClaim({ spec }: PersistentVolume): boolean {
  return spec?.persistentVolumeReclaimPolicy === "Delete" && (spec.claimRef?.uid ?? "") !== "";
}

/** Those of the two finalizers that the volume has. */
export function diskFinalizersOf(volume: PersistentVolume): readonly string[] {
  return [inTreeDeletionFinalizer, provisionerFinalizer].filter((name) => hasFinalizer(volume, name));
}

/**
 * Whether the provisioner's finalizer alone keeps a volume of an in-tree plugin that is being deleted: back in-tree it stays
 * until the disk has been deleted there.
 */
export function standsForInTreeFinalizer(volume: PersistentVolume): boolean {
  const [finalizer, ...more] = diskFinalizersOf(volume);
  const isAlone = finalizer === provisionerFinalizer && more.length === 0;
  return isAlone && isDeleting(volume) && isMadeInTree(volume) && isDeletedWithClaim(volume);
}
