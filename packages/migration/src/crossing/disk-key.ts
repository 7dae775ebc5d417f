/** What names a disk, in whichever form a PersistentVolume is written. Pure. */
import type { PersistentVolume } from "@longshore/kube";
import { volumeFormOf } from "./volume-form.ts";

/**
 * Equal for two PersistentVolumes of one disk, also where one is written in-tree and one for its driver; undefined for a volume of
 * no plugin that can be converted. Projects of GCE are left out, as an in-tree volume does not name its own, and Azure compares
 * without case.
 */
export function diskKeyOf(volume: PersistentVolume): string | undefined {
  const form = volumeFormOf(volume);
  if (form.kind === "other") return undefined;
  const handle = form.kind === "csi" ? form.handle : form.csiHandle;
  if (handle === undefined) return undefined;
  const plain = handle.replace(/^projects\/[^/]+\//, "");
  const known = form.driver.endsWith(".azure.com") ? plain.toLowerCase() : plain;
  return `${form.driver} ${known}`;
}
