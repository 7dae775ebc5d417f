/**
 * What comes next for a claim whose volume is made in-tree. Pure. Source: docs/behaviour/controllers.md B6;
 * docs/contract.md C3.
 *
 *     wanted:     check ──► storeIntent ──► makeVolume ──► storeVolume ──► report ──► settle
 *     deleting:                   makeVolume ──► readVolume ──► deleteDisk ──► removeIntent
 *     not stored:                                readVolume ──► deleteDisk ──► retry
 *
 * Invariants
 *  - The finalizer `longshore.dev/provisioning` is stored on the claim before the plugin is called, and goes once the
 *    volume is stored or the disk is certainly gone: no disk is lost to a crash or to the deletion of its claim.
 *  - What is refused by class, claim, plugin or zones before a disk is made is refused before the finalizer is stored: such a claim
 *    goes when it is deleted. With the finalizer on it, a refusal proves nothing about the disk of an earlier call, and it stays.
 *  - Names are deterministic (`pvc-<uid>`): the same call finds the disk of an earlier one, whatever came of that, and
 *    so does an external provisioner that takes over.
 *  - The disk of a volume that is stored, or that may be stored, is never deleted: only after every attempt to store it
 *    was refused, or for a claim that is being deleted, and directly after a live read that shows no such volume.
 */
import {
  isDeleting,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Stored,
} from "@longshore/kube";
import { DeadlineError, errorChain } from "@longshore/runtime";
import { selectedNodeAnnotation } from "@longshore/storage";
import { CloudError } from "../../framework/ports.ts";
import { classOfClaim } from "./annotations.ts";
import type { Report } from "./events.ts";
import { NoProvisionerError } from "./provisioned-volume.ts";
import type { ProvisioningObservation, Tries } from "./provisioning-observation.ts";

/** One action of the provisioning controller. */
export type ProvisioningStep =
  /** A failed attempt was not long ago. */
  | { readonly step: "wait"; readonly ms: number }
  /** Asks the plugin whether it would make the volume; nothing is made. */
  | { readonly step: "check" }
  /** Stores, for a claim that is refused, whose it is. */
  | { readonly step: "storeProvisioner"; readonly claim: Stored<PersistentVolumeClaim> }
  | { readonly step: "storeIntent"; readonly claim: Stored<PersistentVolumeClaim> }
  /** The plugin must not be asked. */
  | { readonly step: "refuse"; readonly message: string }
  | { readonly step: "makeVolume" }
  | { readonly step: "storeVolume"; readonly volume: PersistentVolume }
  /** Pauses before the next attempt to store the volume, or to delete the disk. */
  | { readonly step: "pause"; readonly of: "storing" | "deleting" }
  /** Reads the stored volume again. */
  | { readonly step: "readVolume" }
  | { readonly step: "deleteDisk"; readonly volume: PersistentVolume }
  | { readonly step: "removeIntent" }
  /** Takes the selected node off the claim: a scheduler chooses again. */
  | { readonly step: "unselectNode" }
  | ({ readonly step: "report" } & Report)
  /** Ends the pass; the claim is looked at again after the back-off. */
  | { readonly step: "retry"; readonly error: unknown }
  | { readonly step: "settle" };

/** Attempts to store a volume that was made, and to delete a disk. */
const triesMax = 5;

/** Decides on the next step. */
export function decideProvisioningStep(observed: ProvisioningObservation): ProvisioningStep {
  const { claim, volume, made, failure, waitMs } = observed;
  if (failure !== undefined) return afterFailure(observed, failure.error);
  if (made === undefined && waitMs > 0) return { step: "wait", ms: waitMs };
  // Also while the claim is being deleted: the disk of a stored volume goes by its release only.
  if (volume !== undefined) return { step: "settle" };
  if (isDeleting(claim)) return abandon(observed);
  return made === undefined ? begin(observed) : store(observed, made);
}

function begin(observed: ProvisioningObservation): ProvisioningStep {
  const { claim, claimWithIntent, storageClass, plugin, isChecked } = observed;
  const isWanted =
    (claim.spec?.volumeName ?? "") === "" && storageClass !== undefined && plugin !== undefined;
  if (!isWanted) return { step: "settle" };
  const refused = refusal(observed);
  if (refused !== undefined) return refused;
  if (claimWithIntent === claim) return { step: "makeVolume" };
  return isChecked === true ? { step: "storeIntent", claim: claimWithIntent } : { step: "check" };
}

/** Why the plugin must not be asked. */
function refusal({
  claim,
  storageClass,
  plugin,
  node,
}: ProvisioningObservation): ProvisioningStep | undefined {
  if ((storageClass?.mountOptions ?? []).length > 0 && plugin?.supportsMountOption() === false) {
    const message = "Mount options are not supported by the provisioner but StorageClass has mount options";
    return { step: "refuse", message };
  }
  if (claim.spec?.dataSource != null || claim.spec?.dataSourceRef != null) {
    const message = `The in-tree plugin ${plugin?.pluginName} makes empty volumes only: take spec.dataSource off the claim, or name a class of a CSI driver`;
    return { step: "refuse", message };
  }
  const attributesClass = claim.spec?.volumeAttributesClassName ?? "";
  if (attributesClass !== "") {
    const message = `The in-tree plugin ${plugin?.pluginName} knows no VolumeAttributesClass: take spec.volumeAttributesClassName "${attributesClass}" off the claim, or name a class of a CSI driver`;
    return { step: "refuse", message };
  }
  const selected = selectedNodeOf(claim);
  if (selected === undefined || node !== undefined) return undefined;
  return { step: "refuse", message: `failed to get target node: node "${selected}" not found` };
}

/**
 * Finds what was made, by making it, which is idempotent, and deletes it. Nothing is refused: what kept the plugin from
 * being asked says nothing about the disk of an earlier call.
 */
function abandon(observed: ProvisioningObservation): ProvisioningStep {
  const { isBegun, made, storageClass, claim } = observed;
  if (!isBegun) return { step: "settle" };
  if (observed.isDeleted === true) return { step: "removeIntent" };
  if (made !== undefined) return cleanUp(observed, made);
  if (storageClass !== undefined) return { step: "makeVolume" };
  return { step: "refuse", message: `storageclass.storage.k8s.io "${classOfClaim(claim)}" not found` };
}

function store(observed: ProvisioningObservation, made: PersistentVolume): ProvisioningStep {
  const { storing, isStored, plugin } = observed;
  if (isStored === true) {
    const message = `Successfully provisioned volume ${made.metadata?.name} using ${plugin?.pluginName}`;
    return reportThen(observed, { step: "settle" }, "Normal", "ProvisioningSucceeded", message);
  }
  if (storing === undefined || storing.failures < triesMax) {
    return nextTry(storing, "storing", { step: "storeVolume", volume: made });
  }
  return afterStoring(observed, made, storing);
}

/** An attempt that got no answer may have stored the volume: its disk stays, and is found again. */
function afterStoring(
  observed: ProvisioningObservation,
  made: PersistentVolume,
  { error, isUncertain: mayBeStored }: Tries,
): ProvisioningStep {
  const retry: ProvisioningStep = { step: "retry", error };
  if (observed.isDeleted === true) return retry;
  if (observed.deleting !== undefined) return cleanUp(observed, made);
  const next = mayBeStored ? retry : cleanUp(observed, made);
  const consequence = mayBeStored ? "It may have been stored: trying again." : "Deleting the volume.";
  const message = `Error creating provisioned PV object for claim ${keyOf(observed.claim)}: ${errorChain(error)}. ${consequence}`;
  return reportThen(observed, next, "Warning", "ProvisioningFailed", message);
}

function cleanUp(observed: ProvisioningObservation, made: PersistentVolume): ProvisioningStep {
  const { deleting, isConfirmedAbsent, claim } = observed;
  if (deleting === undefined || deleting.failures < triesMax) {
    const isRead = isConfirmedAbsent === true;
    return nextTry(
      deleting,
      "deleting",
      isRead ? { step: "deleteDisk", volume: made } : { step: "readVolume" },
    );
  }
  const { error } = deleting;
  const message = `Error cleaning provisioned volume for claim ${keyOf(claim)}: ${errorChain(error)}. Please delete manually.`;
  return reportThen(observed, { step: "retry", error }, "Warning", "ProvisioningCleanupFailed", message);
}

function nextTry(
  tries: Tries | undefined,
  of: "storing" | "deleting",
  step: ProvisioningStep,
): ProvisioningStep {
  return tries === undefined || tries.hasPaused ? step : { step: "pause", of };
}

/** A claim that is being deleted gets no event, and its node stays: only there the disk is found again. */
function afterFailure(observed: ProvisioningObservation, error: unknown): ProvisioningStep {
  const { claim, claimGiven, storageClass } = observed;
  const retry: ProvisioningStep = { step: "retry", error };
  if (isDeleting(claim)) return retry;
  if (claimGiven !== claim) return { step: "storeProvisioner", claim: claimGiven };
  const report = (next: ProvisioningStep, message: string) =>
    reportThen(observed, next, "Warning", "ProvisioningFailed", message);
  // Another node would not help a plugin that makes no volume anywhere.
  if (error instanceof NoProvisionerError) return report(retry, errorChain(error));
  const isToBeUnselected = !isUncertain(error) && selectedNodeOf(claim) !== undefined;
  const className = storageClass?.metadata.name;
  return report(
    isToBeUnselected ? { step: "unselectNode" } : retry,
    `Failed to provision volume with StorageClass "${className}": ${errorChain(error)}`,
  );
}

/** After these the disk may have been made: the same place has to be tried again. */
function isUncertain(error: unknown): boolean {
  return (error instanceof CloudError && error.code === "Unavailable") || error instanceof DeadlineError;
}

function selectedNodeOf(claim: PersistentVolumeClaim): string | undefined {
  return claim.metadata?.annotations?.[selectedNodeAnnotation];
}

function reportThen(
  { isReported }: ProvisioningObservation,
  next: ProvisioningStep,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): ProvisioningStep {
  return isReported === true ? next : { step: "report", type, reason, message };
}
