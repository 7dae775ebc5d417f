/** StorageObjectInUseProtection: new volumes and claims get the finalizer that guards them while in use. */
import type { KubeObject } from "@longshore/kube";
import type { AdmissionPlugin } from "./admission-chain.ts";

const finalizerOf: Readonly<Record<string, string>> = {
  persistentvolumes: "kubernetes.io/pv-protection",
  persistentvolumeclaims: "kubernetes.io/pvc-protection",
};

/** Adds the protection finalizer to new volumes and claims. */
export const storageObjectInUseProtection: AdmissionPlugin = {
  name: "StorageObjectInUseProtection",
  onCreate(_context, { of }, object) {
    const finalizer = of.group === "" ? finalizerOf[of.plural] : undefined;
    return finalizer === undefined ? object : withFinalizer(object, finalizer);
  },
};

function withFinalizer(object: KubeObject, finalizer: string): KubeObject {
  const finalizers = object.metadata?.finalizers ?? [];
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}
