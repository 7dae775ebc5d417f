/** Which changes of claims wake the provisioner. */
import type { PersistentVolumeClaim } from "@longshore/kube";
import { provisioningFinalizer } from "@longshore/storage";

/**
 * Whether a changed claim is looked at again. The provisioner's own intent, put on or taken off, must not wake it,
 * or each claim that fails would be retried once without back-off.
 */
export function shouldEnqueueClaim(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  if (before.metadata?.resourceVersion === after.metadata?.resourceVersion) return true; // A periodic resync.
  const isIntended = (claim: PersistentVolumeClaim) =>
    claim.metadata?.finalizers?.includes(provisioningFinalizer);
  if (isIntended(before) === isIntended(after)) return true;
  return JSON.stringify(besideIntent(before)) !== JSON.stringify(besideIntent(after));
}

function besideIntent(claim: PersistentVolumeClaim): unknown {
  const { resourceVersion: _, managedFields: __, finalizers = [], ...metadata } = claim.metadata ?? {};
  return [
    Object.entries(metadata).sort(),
    finalizers.filter((f) => f !== provisioningFinalizer),
    claim.spec,
    claim.status,
  ];
}
