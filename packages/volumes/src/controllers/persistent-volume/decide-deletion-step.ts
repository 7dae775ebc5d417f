/**
 * Whether the disk of a volume is deleted. Pure. Source: docs/behaviour/controllers.md B5, "Delete operation";
 * docs/contract.md C3.
 *
 *     deleteDisk ──► deleteVolume, unless a user has ──► removeFinalizer, if it has it
 *         └─ failed ──► markFailed ──► report ──► retry
 *
 * Invariant: volume and claim are as they are stored now, not as a cache shows them: a disk is deleted only while its
 * volume is Released (or Failed in an earlier deletion), asks for it, and its own claim is gone or has another volume.
 */
import { isDeleting, type PersistentVolume, type PersistentVolumeClaim, type Stored } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { migratedToAnnotation } from "@longshore/storage";
import { DeletedVolumeInUseError } from "../../framework/controller-errors.ts";
import { volumeInPhase } from "./bound-objects.ts";
import { isDeletionAwaited, isKeptForDisk } from "./deletion-finalizer.ts";
import type { Report } from "./events.ts";

type Volume = Stored<PersistentVolume>;

/** What is known about a volume whose disk may have to go; volume and claim are read live. */
export interface DeletionObservation {
  readonly volume: Volume;
  /** The claim that has the name of the claimRef now, whatever its UID. */
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
  /** An external provisioner made the volume, and deletes it. */
  readonly isExternal: boolean;
  /** Milliseconds until a deletion that failed may be tried again; 0: now. */
  readonly waitMs: number;
  /** This pass has deleted the disk. */
  readonly isDeleted?: boolean;
  /** The disk could not be deleted. */
  readonly failure?: { readonly error: unknown; readonly retryInMs: number };
  /** The event that is due has been emitted. */
  readonly isReported?: boolean;
}

/** One action of the deletion controller. */
export type DeletionStep =
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "deleteDisk" }
  | { readonly step: "deleteVolume" }
  | { readonly step: "removeFinalizer" }
  | { readonly step: "markFailed"; readonly volume: Volume }
  | ({ readonly step: "report" } & Report)
  | { readonly step: "retry"; readonly error: unknown; readonly afterMs: number }
  | { readonly step: "settle" };

/** Decides on the next step. */
export function decideDeletionStep(observed: DeletionObservation): DeletionStep {
  const { failure, waitMs } = observed;
  if (failure !== undefined) return afterFailure(observed, failure.error, failure.retryInMs);
  if (observed.isDeleted === true) return afterDisk(observed.volume);
  if (waitMs > 0) return { step: "wait", ms: waitMs };
  return isToBeDeleted(observed) ? { step: "deleteDisk" } : { step: "settle" };
}

/** The finalizer goes last: until then a crash has the disk deleted once more, which does nothing. */
function afterDisk(volume: Volume): DeletionStep {
  if (!isDeleting(volume)) return { step: "deleteVolume" };
  return { step: isKeptForDisk(volume) ? "removeFinalizer" : "settle" };
}

function isToBeDeleted({ volume, claim, isExternal }: DeletionObservation): boolean {
  const phase = volume.status?.phase;
  if (isExternal || !isDeletionAwaited(volume)) return false;
  // It may have been handed to an external provisioner after the volumes controller asked for this.
  if ((volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== "") return false;
  if (volume.spec?.persistentVolumeReclaimPolicy !== "Delete") return false;
  if (phase !== "Released" && phase !== "Failed") return false;
  return isReleased(volume, claim);
}

/** The claim of the claimRef is gone, or has taken another volume. Without a UID there is no claim that could be gone. */
function isReleased(volume: Volume, claim: Stored<PersistentVolumeClaim> | undefined): boolean {
  const uid = volume.spec?.claimRef?.uid ?? "";
  if (uid === "") return false;
  if (claim?.metadata.uid !== uid) return true;
  const taken = claim.spec?.volumeName ?? "";
  return taken !== "" && taken !== volume.metadata.name;
}

function afterFailure(observed: DeletionObservation, error: unknown, afterMs: number): DeletionStep {
  const message = errorChain(error);
  const retry: DeletionStep = { step: "retry", error, afterMs };
  if (error instanceof DeletedVolumeInUseError) {
    const report = { type: "Normal", reason: "VolumeDelete", message } as const;
    return observed.isReported === true ? retry : { step: "report", ...report };
  }
  const failed = volumeInPhase(observed.volume, "Failed", message);
  if (failed !== observed.volume) return { step: "markFailed", volume: failed };
  const report = { type: "Warning", reason: "VolumeFailedDelete", message } as const;
  return observed.isReported === true ? retry : { step: "report", ...report };
}
