/** Which volumes the resizer of a driver expands, and how the driver knows them. Pure. Source: docs/behaviour/sidecars.md 4. */
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec } from "@longshore/kube";
import { storageResizerAnnotation } from "@longshore/storage";
import { getInTreePluginNameFromSpec, isPVMigratable, translateInTreePVToCSI } from "@longshore/translation";
import type { Driver } from "../common/sidecar-env.ts";

/**
 * Whether this driver expands the volume: a CSI volume of the driver, or an in-tree one of the plugin it takes over
 * whose claim names the driver as its resizer. With the in-tree name there, the in-tree controller is at work.
 */
export function isExpandedBy(
  driver: Pick<Driver, "name" | "inTreeName">,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
): boolean {
  const csi = volume.spec?.csi;
  if (csi) return csi.driver === driver.name;
  if (driver.inTreeName === undefined) return false;
  if (claim.metadata?.annotations?.[storageResizerAnnotation] !== driver.name) return false;
  return isPVMigratable(volume) && getInTreePluginNameFromSpec(volume, undefined) === driver.inTreeName;
}

/** Whether volume and claim are bound to each other. */
export function isBoundTo(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { claimRef } = volume.spec ?? {};
  return claimRef?.uid === claim.metadata?.uid && claimRef?.namespace === claim.metadata?.namespace;
}

/** The volume in CSI's form, and whether it had to be translated. @throws TranslationError when it cannot be */
export function csiSpecOf(volume: PersistentVolume): {
  readonly spec: PersistentVolumeSpec;
  readonly migrated: boolean;
} {
  if (volume.spec?.csi) return { spec: volume.spec, migrated: false };
  const translated = translateInTreePVToCSI(volume) as PersistentVolume;
  return { spec: translated.spec ?? {}, migrated: true };
}
