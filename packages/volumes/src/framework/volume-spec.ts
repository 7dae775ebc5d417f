/** A volume as plugins see it: an inline volume of a pod, or a PersistentVolume. */
import type { PersistentVolume, Volume } from "@longshore/kube";

/**
 * The unit passed to every plugin method; exactly one of `volume` and `persistentVolume` is set.
 * Source: docs/behaviour/volume-plugins.md 1.
 */
export interface VolumeSpec {
  readonly volume?: Volume;
  readonly persistentVolume?: PersistentVolume;
  /** Effective read-only flag: from the pod's claim source, or the inline source. */
  readonly readOnly: boolean;
  /** True only when `persistentVolume` was made by translating an inline in-tree volume. */
  readonly inlineVolumeSpecForCsiMigration: boolean;
  /** True only when the spec was made by translating an in-tree one; for metrics alone. */
  readonly isMigrated?: boolean;
}

/** A spec of an inline volume. */
export function specOfVolume(volume: Volume): VolumeSpec {
  return { volume, readOnly: false, inlineVolumeSpecForCsiMigration: false };
}

/** A spec of a PersistentVolume. */
export function specOfPersistentVolume(persistentVolume: PersistentVolume, readOnly: boolean): VolumeSpec {
  return { persistentVolume, readOnly, inlineVolumeSpecForCsiMigration: false };
}

/** The inline volume's name, else the PV's name, else the empty string. */
export function specName(spec: VolumeSpec): string {
  return spec.volume?.name ?? spec.persistentVolume?.metadata?.name ?? "";
}

/** Whether pods get the volume as a device (`volumeMode: Block`). */
export function isBlockSpec(spec: VolumeSpec): boolean {
  return spec.persistentVolume?.spec?.volumeMode === "Block";
}
