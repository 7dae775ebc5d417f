/** Whose business a claim is (docs/behaviour/sidecars.md 2.2, 2.8). Pure. */
import type { PersistentVolumeClaim } from "@longshore/kube";
import { migratedToAnnotation, storageProvisionerOf } from "@longshore/storage";
import type { Driver } from "../../common/sidecar-env.ts";

/**
 * Whether the claim is annotated for this driver: by its name, as persistent-volume controllers write that know of the
 * migration, or by the in-tree plugin's name together with `migrated-to`. One with the in-tree name alone belongs to
 * the persistent-volume controller.
 */
export function isClaimOurs(
  driver: Pick<Driver, "name" | "inTreeName">,
  claim: PersistentVolumeClaim,
): boolean {
  const annotations = claim.metadata?.annotations;
  const provisioner = storageProvisionerOf(annotations);
  if (provisioner === driver.name) return true;
  const isKnown = provisioner !== undefined && provisioner === driver.inTreeName;
  return isKnown && annotations?.[migratedToAnnotation] === driver.name;
}
