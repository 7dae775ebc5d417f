/**
 * What is to be done about the CSIDriver object of a driver (docs/behaviour/sidecars.md 7). Pure.
 *
 *     absent ──► create
 *     ours, from an earlier run with other settings ──► delete ──► absent
 *     another owner's, and different ──► report, once ──► leave
 */
import { type CSIDriver, isDeleting, type Stored } from "@longshore/kube";
import { isOwnCsiDriver } from "./csi-driver-object.ts";

/** What one look at the object knows. */
export interface ObservedCsiDriver {
  readonly stored: Stored<CSIDriver> | undefined;
  /** The object that the registrar would make. */
  readonly wanted: CSIDriver;
  /** The fields that were last reported as different; empty when nothing is wrong that was reported. */
  readonly reported: readonly string[];
}

/** One step towards the wanted object. */
export type CsiDriverStep =
  | { readonly step: "settle" }
  | { readonly step: "create" }
  /** Most of its spec is immutable, so it is deleted and created again. */
  | { readonly step: "delete"; readonly object: Stored<CSIDriver> }
  | { readonly step: "report"; readonly fields: readonly string[] }
  /** It has been reported as it is. */
  | { readonly step: "leave" };

const compared = ["attachRequired", "podInfoOnMount"] as const;

/** Compares what is stored with what is wanted. Fields that the API leaves out have its defaults. */
export function decideCsiDriverStep({ stored, wanted, reported }: ObservedCsiDriver): CsiDriverStep {
  if (stored === undefined) return { step: "create" };
  const defaults = { attachRequired: true, podInfoOnMount: false };
  const fields = compared.filter(
    (field) => (stored.spec[field] ?? defaults[field]) !== (wanted.spec[field] ?? defaults[field]),
  );
  // What is going is made again once it is gone.
  if (fields.length === 0 || isDeleting(stored)) return { step: "settle" };
  if (isOwnCsiDriver(stored)) return { step: "delete", object: stored };
  // Only an administrator can put it right, so it is not repeated at each look.
  return fields.join() === reported.join() ? { step: "leave" } : { step: "report", fields };
}
