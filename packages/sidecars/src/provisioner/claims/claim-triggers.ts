/** Which changes of claims wake the provisioner. */
import type { PersistentVolumeClaim } from "@longshore/kube";
import { provisioningFinalizer } from "@longshore/storage";
import { isIntended } from "../claim-writes.ts";

/**
 * Whether a changed claim is looked at again. Adding or removing the provisioner's own intent must not wake it, or each
 * claim that fails would be retried once without back-off.
 */
export function shouldEnqueueClaim(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  if (before.metadata?.resourceVersion === after.metadata?.resourceVersion) return true; // A periodic resync.
  if (isIntended(before) === isIntended(after)) return true;
  return !sameBesideIntent(before, after);
}

/** Bookkeeping of the server, and what the intent itself changes. */
const passedOver: ReadonlySet<string> = new Set([
  "resourceVersion",
  "managedFields",
  "generation",
  "finalizers",
]);

function sameBesideIntent(a: PersistentVolumeClaim, b: PersistentVolumeClaim): boolean {
  const others = (claim: PersistentVolumeClaim) =>
    (claim.metadata?.finalizers ?? []).filter((finalizer) => finalizer !== provisioningFinalizer);
  return (
    same(a.metadata ?? {}, b.metadata ?? {}, passedOver) &&
    same(others(a), others(b)) &&
    same(a.spec, b.spec) &&
    same(a.status, b.status)
  );
}

/** Whether two JSON values are equal, whatever the order of members. */
function same(a: unknown, b: unknown, without: ReadonlySet<string> = nothing): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [members, others] = [a, b].map((value) => Object.keys(value).filter((key) => !without.has(key)));
  if (members?.length !== others?.length) return false;
  const [x, y] = [a, b] as Record<string, unknown>[];
  return (members ?? []).every((key) => same(x?.[key], y?.[key]));
}

const nothing: ReadonlySet<string> = new Set();
