/** PersistentVolumeClaimResize: only claims of a class that allows it may grow. */
import { type PersistentVolumeClaim, parseQuantity, type StorageClass } from "@longshore/kube/basics";
import { forbidden } from "../api/errors.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

const refusal =
  "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";

/** Refuses the expansion of a claim whose class does not allow it. */
export const persistentVolumeClaimResize: AdmissionPlugin = {
  name: "PersistentVolumeClaimResize",
  onUpdate({ store }, { of }, next, old) {
    if (of.group !== "" || of.plural !== "persistentvolumeclaims") return next;
    const [claim, before] = [next as PersistentVolumeClaim, old as PersistentVolumeClaim];
    const [size, sizeBefore] = [
      claim.spec?.resources?.requests?.storage,
      before.spec?.resources?.requests?.storage,
    ];
    if (size === undefined || sizeBefore === undefined || size === sizeBefore) return next;
    if (before.status?.phase !== "Bound") return next;
    if (parseQuantity(size).compare(parseQuantity(sizeBefore)) <= 0) return next;
    const name = before.spec?.storageClassName ?? "";
    const found = store.table("storageclasses.storage.k8s.io").get("", name) as StorageClass | undefined;
    if (found?.allowVolumeExpansion === true) return next;
    throw forbidden({ group: "", resource: "persistentvolumeclaims" }, old.metadata.name, refusal);
  },
};
