/** DefaultStorageClass: a claim that names no class gets the cluster's default one. */
import type { KubeObject, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

const marks = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];
const legacyClass = "volume.beta.kubernetes.io/storage-class";

/** Sets the cluster's default class on a new claim that names no class. */
export const defaultStorageClass: AdmissionPlugin = {
  name: "DefaultStorageClass",
  onCreate({ store, version }, { of }, object) {
    if (of.group !== "" || of.plural !== "persistentvolumeclaims") return object;
    const claim = object as PersistentVolumeClaim;
    const named = claim.spec?.storageClassName ?? claim.metadata?.annotations?.[legacyClass];
    if (named !== undefined) return object;
    const defaults = store
      .table("storageclasses.storage.k8s.io")
      .list()
      .filter((c) => marks.some((mark) => c.metadata.annotations?.[mark] === "true"));
    if (version.has("newestDefaultStorageClass")) defaults.sort(newestFirst);
    const [only] = defaults;
    if (only === undefined) return object;
    if (defaults.length > 1 && !version.has("newestDefaultStorageClass")) {
      throw forbidden(
        { group: "", resource: "persistentvolumeclaims" },
        claim.metadata?.name ?? "",
        `Internal error occurred: ${defaults.length} default StorageClasses were found`,
      );
    }
    return { ...claim, spec: { ...claim.spec, storageClassName: only.metadata.name } } as KubeObject;
  },
};

/** The newest of several default classes counts; of those as new, the first by name. */
function newestFirst(a: Stored, b: Stored): number {
  const [x, y] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  if (x !== y) return x > y ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
