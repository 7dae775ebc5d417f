/**
 * What comes next for a volume: the phase that its claim asks for, and its end when the claim is gone. Pure. Source:
 * docs/behaviour/controllers.md B5; the migration annotation comes first (B2).
 *
 *     Available ──bind──► Bound ──claim gone──► Released ──deleted──► (gone)
 *                                                  └─delete failed──► Failed ──retry──┘
 *
 * Invariant (C3): a claim counts as gone only after a live GET; a volume with `migrated-to` is the external
 * provisioner's and never touched.
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { migratedToAnnotation, provisionedByAnnotation } from "@longshore/storage";
import { unboundVolume, type VolumePhase, volumeInPhase } from "./bound-objects.ts";
import { isDeletionAwaited } from "./deletion-finalizer.ts";
import type { Report } from "./events.ts";
import { volumeModeOf } from "./match-volume.ts";

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

/** What is known about a volume. */
export interface VolumeObservation {
  readonly volume: Volume;
  /**
   * The volume with the migration annotation that the gates ask for, and with the finalizer that gates and reclaim policy
   * ask for; the same object when it has both.
   */
  readonly migrated: Volume;
  /** The claim of the claimRef, with its UID; undefined: there is no claimRef with a UID, or the claim is surely gone. */
  readonly claim: Claim | undefined;
  /** This pass has changed the phase of the volume. */
  readonly hasNewPhase?: boolean;
  /** Events that this pass has emitted. */
  readonly reports?: number;
}

/** One action of the volumes controller. */
export type VolumeStep =
  | { readonly step: "markMigration"; readonly volume: Volume }
  | { readonly step: "setPhase"; readonly volume: Volume }
  /** Takes the claim off the volume. */
  | { readonly step: "unbind"; readonly volume: Volume }
  /** Has the claim bound by its own controller. */
  | { readonly step: "wakeClaim" }
  /** Has the disk deleted. */
  | { readonly step: "delete" }
  | ({ readonly step: "reportOnVolume" } & Report)
  | ({ readonly step: "reportOnClaim"; readonly claim: Claim } & Report)
  | { readonly step: "settle" };

/** Recycle is deprecated in Kubernetes: the remedy is part of what kubectl shows. */
const recycleMessage =
  "No recycler plugin found for the volume! The reclaim policy Recycle is deprecated: " +
  "set persistentVolumeReclaimPolicy to Retain or Delete";

/** Whether the claimRef of the volume names one certain claim, not only a name. */
export function hasClaim(volume: PersistentVolume): boolean {
  return (volume.spec?.claimRef?.uid ?? "") !== "";
}

/** Decides on the next step. */
export function decideVolumeStep(observed: VolumeObservation): VolumeStep {
  const { volume, migrated, claim } = observed;
  if (migrated !== volume) return { step: "markMigration", volume: migrated };
  if (!hasClaim(volume)) return inPhase(volume, "Available") ?? { step: "settle" };
  if (claim === undefined) return release(observed);
  const claimed = claim.spec?.volumeName ?? "";
  if (claimed === volume.metadata.name) return inPhase(volume, "Bound") ?? { step: "settle" };
  if (claimed === "") return leaveToClaim(observed, claim);
  // Made for this claim, which is bound to another volume: no claim will ever use it.
  const isSpare =
    volume.metadata.annotations?.[provisionedByAnnotation] !== undefined &&
    volume.spec?.persistentVolumeReclaimPolicy === "Delete";
  return isSpare ? release(observed) : { step: "unbind", volume: unboundVolume(volume) };
}

/** Undefined: the volume is in the phase. */
function inPhase(volume: Volume, phase: VolumePhase, message?: string): VolumeStep | undefined {
  const after = volumeInPhase(volume, phase, message);
  return after === volume ? undefined : { step: "setPhase", volume: after };
}

function leaveToClaim({ volume, reports = 0 }: VolumeObservation, claim: Claim): VolumeStep {
  if (volumeModeOf(volume) === volumeModeOf(claim)) return { step: "wakeClaim" };
  const event = { type: "Warning", reason: "VolumeMismatch" } as const;
  if (reports === 0) {
    const message = `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`;
    return { step: "reportOnVolume", ...event, message };
  }
  if (reports > 1) return { step: "settle" };
  const message = `Cannot bind to requested volume "${volume.metadata.name}": incompatible volumeMode`;
  return { step: "reportOnClaim", claim, ...event, message };
}

function release(observed: VolumeObservation): VolumeStep {
  const { volume } = observed;
  if (volume.status?.phase !== "Failed") {
    const released = inPhase(volume, "Released");
    if (released !== undefined) return released;
  }
  return reclaim(observed);
}

function reclaim(observed: VolumeObservation): VolumeStep {
  const { volume } = observed;
  if ((volume.metadata.annotations?.[migratedToAnnotation] ?? "") !== "") return { step: "settle" };
  const policy = volume.spec?.persistentVolumeReclaimPolicy ?? "Retain";
  switch (policy) {
    case "Retain":
      return { step: "settle" };
    case "Delete":
      return { step: isDeletionAwaited(volume) ? "delete" : "settle" };
    case "Recycle":
      return fail(observed, "VolumeFailedRecycle", recycleMessage);
    default: {
      const message = `Volume has an unrecognized PersistentVolumeReclaimPolicy: ${policy}`;
      return fail(observed, "VolumeUnknownReclaimPolicy", message);
    }
  }
}

/** The phase first: the event is emitted once, when it has changed. */
function fail(
  { volume, hasNewPhase, reports = 0 }: VolumeObservation,
  reason: string,
  message: string,
): VolumeStep {
  const failed = inPhase(volume, "Failed", message);
  if (failed !== undefined) return failed;
  if (hasNewPhase !== true || reports > 0) return { step: "settle" };
  return { step: "reportOnVolume", type: "Warning", reason, message };
}
