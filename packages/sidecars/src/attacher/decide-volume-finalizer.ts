/** Whether the attacher's finalizer is taken off a PersistentVolume (docs/behaviour/sidecars.md 3.3). Pure. */
import { hasFinalizer, isDeleting, type PersistentVolume, type Stored } from "@longshore/kube";
import { attacherFinalizer, migratedToAnnotation } from "@longshore/storage";
import { isPVMigratable } from "@longshore/translation";

/** What one pass over a volume knows. */
export interface ObservedVolume {
  readonly volume: Stored<PersistentVolume>;
  readonly driverName: string;
  /** An attachment names the volume. */
  readonly isAttached: boolean;
}

/** One step over a volume. */
export type VolumeFinalizerStep = { readonly step: "settle" } | { readonly step: "removeVolumeFinalizer" };

/** The next step. The end of each attachment wakes its volume again. */
export function decideVolumeFinalizer({
  volume,
  driverName,
  isAttached,
}: ObservedVolume): VolumeFinalizerStep {
  if (isAttached || !hasStaleFinalizer(volume, driverName)) return { step: "settle" };
  return { step: "removeVolumeFinalizer" };
}

/** Whether our finalizer is on a volume that the attacher has no further claim on, attachments left aside. */
export function hasStaleFinalizer(pv: PersistentVolume, driver: string): boolean {
  const isStale =
    isDeleting(pv) || (isPVMigratable(pv) && pv.metadata?.annotations?.[migratedToAnnotation] !== driver);
  return isStale && hasFinalizer(pv, attacherFinalizer(driver));
}
