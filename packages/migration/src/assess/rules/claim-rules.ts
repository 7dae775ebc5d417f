/** Claims that wait for a provisioner, or are held by one. */
import { hasFinalizer, isDeleting, type PersistentVolumeClaim, type Stored } from "@longshore/kube";
import { provisioningFinalizer, storageProvisionerOf } from "@longshore/storage";
import { getCSINameFromInTreeName, isMigratableIntreePluginByName } from "@longshore/translation";
import type { InventoryFacts } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";

/** Findings about PersistentVolumeClaims. */
export function claimRules(view: InventoryFacts): RuleFinding[] {
  return [...(view.inventory.unread.has("CSINode") ? [] : waiting(view)), ...held(view)];
}

function waiting(view: InventoryFacts): RuleFinding[] {
  const provisionerOfClass = new Map(
    view.inventory.classes.map(({ metadata, provisioner }) => [metadata.name, provisioner]),
  );
  return view.inventory.claims.flatMap((claim) => {
    if (claim.status?.phase !== "Pending" || isDeleting(claim) || claim.spec?.volumeName !== undefined)
      return [];
    const provisioner =
      storageProvisionerOf(claim.metadata.annotations) ??
      provisionerOfClass.get(claim.spec?.storageClassName ?? "");
    const driver = driverOf(provisioner);
    if (driver === undefined || view.registered.has(driver)) return [];
    const via = driver === provisioner ? "" : `, which ${driver} takes over`;
    return [
      found("LS1401", {
        object: subjectOf("PersistentVolumeClaim", claim),
        field: "status.phase",
        evidence: `it is Pending; its provisioner is ${provisioner}${via}, and no node has that driver`,
      }),
    ];
  });
}

/** The CSI driver that makes volumes for the provisioner; undefined for provisioners that need not be drivers. */
function driverOf(provisioner: string | undefined): string | undefined {
  if (provisioner === undefined) return undefined;
  if (isMigratableIntreePluginByName(provisioner)) return getCSINameFromInTreeName(provisioner);
  return provisioner.includes(".csi.") ? provisioner : undefined;
}

function held(view: InventoryFacts): RuleFinding[] {
  const isHeld = (claim: Stored<PersistentVolumeClaim>) =>
    isDeleting(claim) && hasFinalizer(claim, provisioningFinalizer);
  return view.inventory.claims.filter(isHeld).map((claim) =>
    found("LS1402", {
      object: subjectOf("PersistentVolumeClaim", claim),
      field: "metadata.finalizers",
      evidence: `it is being deleted since ${claim.metadata.deletionTimestamp}, and ${provisioningFinalizer} holds it`,
    }),
  );
}
