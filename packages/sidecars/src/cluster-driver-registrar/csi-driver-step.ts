/** What is to be done about the CSIDriver object of a driver (docs/behaviour/sidecars.md 7). Pure. */
import { type CSIDriver, isDeleting } from "@longshore/kube";
import { madeByAnnotation } from "@longshore/storage";

/** Value of the annotation on objects that this registrar made: those, and no others, it may delete. */
export const clusterDriverRegistrar = "cluster-driver-registrar";

/** One step towards the wanted object. */
export type CsiDriverStep =
  | { readonly kind: "none" }
  | { readonly kind: "create" }
  /**
   * Ours, from an earlier run with other settings: most of its spec is immutable, so it is deleted and created again.
   */
  | { readonly kind: "replace"; readonly fields: readonly string[] }
  /** Another owner's: left as it is, and reported. */
  | { readonly kind: "differs"; readonly fields: readonly string[] };

const compared = ["attachRequired", "podInfoOnMount"] as const;

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

/** Compares what is stored with what is wanted. Fields that the API leaves out have its defaults. */
export function decideCsiDriverStep(stored: CSIDriver | undefined, wanted: CSIDriver): CsiDriverStep {
  if (stored === undefined) return { kind: "create" };
  const defaults = { attachRequired: true, podInfoOnMount: false };
  const fields = compared.filter(
    (field) => (stored.spec[field] ?? defaults[field]) !== (wanted.spec[field] ?? defaults[field]),
  );
  // What is going is made again once it is gone.
  if (fields.length === 0 || isDeleting(stored)) return { kind: "none" };
  return { kind: isOwnCsiDriver(stored) ? "replace" : "differs", fields };
}
