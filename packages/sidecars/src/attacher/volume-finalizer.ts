/**
 * Takes the attacher's finalizer off a PersistentVolume once nothing can need it (docs/behaviour/sidecars.md 3.3): the volume is
 * being deleted, or it is in-tree and no longer migrated to this driver, and no attachment names it.
 */
import {
  isDeleting,
  isNotFound,
  type PersistentVolume,
  type ReconcileResult,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { attacherFinalizer, migratedToAnnotation } from "@longshore/storage";
import { isPVMigratable } from "@longshore/translation";
import { removeFinalizerPatch } from "../common/finalizers.ts";
import type { AttachContext } from "./attach-reconciler.ts";

/** Whether the attacher of `driver` has no further claim on the volume, attachments left aside. */
export function isReleased(pv: PersistentVolume, driver: string): boolean {
  if (isDeleting(pv)) return true;
  return isPVMigratable(pv) && pv.metadata?.annotations?.[migratedToAnnotation] !== driver;
}

/** Whether our finalizer is on a volume that the attacher has no further claim on, attachments left aside. */
export function holdsInVain(pv: PersistentVolume, driver: string): boolean {
  return isReleased(pv, driver) && (pv.metadata?.finalizers ?? []).includes(attacherFinalizer(driver));
}

/** One pass over the volume of this name. */
export async function reconcileVolumeFinalizer(
  context: AttachContext & { readonly attachmentsOf: (pvName: string) => readonly unknown[] },
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const pv: Stored<PersistentVolume> | undefined = context.volumes.get(name);
  if (pv === undefined || !holdsInVain(pv, context.driver.name)) return settled;
  const { finalizer } = context;
  // The end of each attachment wakes its volume again.
  if (context.attachmentsOf(name).length > 0) return settled;
  const body = removeFinalizerPatch(pv.metadata.finalizers, finalizer);
  try {
    await context.env.kube.patch(resources.persistentVolumes, { name }, { type: "json", body }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return settled;
}
