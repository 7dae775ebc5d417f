/** Mount options of volumes. Source: upstream MountOptionFromSpec. */
import type { PersistentVolume } from "@longshore/kube";

/** Mount options of a PV, without duplicates and sorted: the beta annotation wins over the field. */
export function mountOptionsOf(pv: PersistentVolume): readonly string[] {
  const annotation = pv.metadata?.annotations?.["volume.beta.kubernetes.io/mount-options"];
  const options = annotation === undefined ? (pv.spec?.mountOptions ?? []) : annotation.split(",");
  return [...new Set(options.filter((option) => option !== ""))].sort();
}
