/** The provisioner's decision for one PersistentVolume (docs/behaviour/sidecars.md 2.4). Pure. */
import { hasFinalizer, isDeleting, type PersistentVolume } from "@longshore/kube";
import {
  diskFinalizersOf,
  migratedToAnnotation,
  provisionedByAnnotation,
  provisionerFinalizer,
  standsForInTreeFinalizer,
} from "@longshore/storage";
import { getInTreePluginNameFromSpec, isPVMigratable } from "@longshore/translation";
import type { Driver } from "../common/sidecar-env.ts";

/** What one pass over a volume has to do. */
export type VolumeGoal = "none" | "protect" | "unprotect" | "delete";

type DriverNames = Pick<Driver, "name" | "inTreeName">;

/**
 * Whether this driver's provisioner is responsible for the volume. An in-tree one must say `migrated-to`, or that the
 * driver itself provisioned it: otherwise the persistent-volume controller deletes it, and only one component may.
 */
export function isVolumeOurs(driver: DriverNames, pv: PersistentVolume): boolean {
  const annotations = pv.metadata?.annotations;
  const provisionedBy = annotations?.[provisionedByAnnotation];
  if (isPVMigratable(pv)) {
    const isHandedOver = annotations?.[migratedToAnnotation] === driver.name || provisionedBy === driver.name;
    return isOfOurPlugin(driver, pv) && isHandedOver;
  }
  if (pv.spec?.csi?.driver !== driver.name) return false;
  return provisionedBy === undefined || provisionedBy === driver.name;
}

/** Whether the volume is the driver's by its source, whichever plugin handles it now. */
export function isOfDriver(driver: DriverNames, pv: PersistentVolume): boolean {
  return isPVMigratable(pv) ? isOfOurPlugin(driver, pv) : pv.spec?.csi?.driver === driver.name;
}

function isOfOurPlugin({ inTreeName }: DriverNames, pv: PersistentVolume): boolean {
  return inTreeName !== undefined && getInTreePluginNameFromSpec(pv, undefined) === inTreeName;
}

/** What to do now. @param protectVolumes whether volumes with policy Delete carry our finalizer */
export function decideVolumeGoal(
  driver: DriverNames,
  pv: PersistentVolume,
  protectVolumes: boolean,
): VolumeGoal {
  const isProtected = hasFinalizer(pv, provisionerFinalizer);
  if (!isVolumeOurs(driver, pv)) {
    // In-tree again, or still: our finalizer on it is removed, so that a return to in-tree can complete. On a volume that is
    // being deleted it is all that keeps the object until its disk is deleted in-tree, which takes it off.
    const isLeftOver = isProtected && isPVMigratable(pv) && isOfOurPlugin(driver, pv);
    return isLeftOver && !standsForInTreeFinalizer(pv) ? "unprotect" : "none";
  }
  const isToBeDeleted = pv.spec?.persistentVolumeReclaimPolicy === "Delete";
  if (isProtected && (!isToBeDeleted || !protectVolumes)) return "unprotect";
  const phase = pv.status?.phase;
  // Failed: it was released, and in-tree code could not delete it before the migration. Only this provisioner tries
  // again.
  const isReleased = phase === "Released" || phase === "Failed";
  // One whose deletion was requested in-tree has the in-tree finalizer: ours could not be added any more.
  const isKeptForDisk = diskFinalizersOf(pv).length > 0;
  if (isToBeDeleted && isReleased && (!isDeleting(pv) || isKeptForDisk)) return "delete";
  if (isToBeDeleted && phase === "Bound" && protectVolumes && !isProtected && !isDeleting(pv))
    return "protect";
  return "none";
}
