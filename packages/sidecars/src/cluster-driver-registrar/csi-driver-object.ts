/** The CSIDriver object that the cluster-driver-registrar makes. Pure. */
import type { CSIDriver } from "@longshore/kube";
import { madeByAnnotation } from "@longshore/storage";

/** Value of the annotation on objects that this registrar made: those, and no others, it may delete. */
const clusterDriverRegistrar = "cluster-driver-registrar";

/** The object that the registrar makes. */
export function csiDriverObject(
  name: string,
  spec: { readonly attachRequired: boolean; readonly podInfoOnMount: boolean },
): CSIDriver {
  return { metadata: { name, annotations: { [madeByAnnotation]: clusterDriverRegistrar } }, spec };
}

/** Whether the registrar made this object, in this life or an earlier one. */
export function isOwnCsiDriver(object: CSIDriver): boolean {
  return object.metadata?.annotations?.[madeByAnnotation] === clusterDriverRegistrar;
}
