/**
 * What comes next for a claim that asks for more than its volume has. Pure. Source:
 * docs/behaviour/controllers.md Part C.
 *
 *     external:  report ──► annotateResizer ──► settle
 *     in-tree:   markResizing ──► expandDevice ──► storeCapacity ──┬─► markFileSystemResizePending
 *                                                                  └─► storeClaimCapacity ──► report ──► settle
 *
 * Invariants
 *  - The annotation `storage-resizer` names the only party that may expand: it is stored before the device grows.
 *  - The capacity that a volume or a claim shows is never more than what its device has.
 */
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  Stored,
} from "@longshore/kube";
import { keyOf, parseQuantity, type Quantity } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { storageResizerAnnotation } from "@longshore/storage";
import type { ExpandableVolumePlugin } from "../../framework/volume-plugin.ts";
import { mergedResizeConditions } from "./merged-resize-conditions.ts";

/** Who can expand a volume. */
export type Expander =
  | { readonly kind: "external"; readonly inTreePlugin: string; readonly driver: string }
  | {
      readonly kind: "in-tree";
      readonly plugin: Pick<ExpandableVolumePlugin, "pluginName" | "requiresFSResize" | "expandVolumeDevice">;
    }
  /** No plugin, which is worth a warning, or one that cannot expand. */
  | { readonly kind: "none"; readonly eventType: "Normal" | "Warning" };

/** What is known about a claim that asks for more. */
export interface ExpandObservation {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The volume that the claim names, read live; undefined: there is none. */
  readonly volume: Stored<PersistentVolume> | undefined;
  readonly expander: Expander;
  /** Time of the pass, for conditions: RFC 3339, in seconds. */
  readonly now: string;
  /** This pass has stored annotation and condition. */
  readonly isMarked?: boolean;
  /** Size of the device, as a quantity, once this pass has expanded it. */
  readonly grownTo?: string;
  /** This pass has stored the new size in the claim. */
  readonly isFinished?: boolean;
  /** What kept an action of this pass from being done. */
  readonly failure?: { readonly error: unknown } | undefined;
  /** The event that is due has been emitted. */
  readonly isReported?: boolean;
}

/** One action of the expand controller. */
export type ExpandStep =
  /** Emits an event on the claim. */
  | {
      readonly step: "report";
      readonly type: "Normal" | "Warning";
      readonly reason: string;
      readonly message: string;
    }
  /** Leaves the volume to the external resizer. */
  | { readonly step: "annotateResizer"; readonly resizer: string }
  /** Takes the volume over, and says so in a condition. */
  | {
      readonly step: "markResizing";
      readonly resizer: string;
      readonly conditions: readonly PersistentVolumeClaimCondition[];
    }
  | { readonly step: "expandDevice"; readonly from: Quantity; readonly to: Quantity }
  /** Stores the size of the device in the volume. */
  | { readonly step: "storeCapacity"; readonly storage: string }
  | {
      readonly step: "markFileSystemResizePending";
      readonly conditions: readonly PersistentVolumeClaimCondition[];
    }
  /** Stores the new size in the claim: nothing is left to grow. */
  | {
      readonly step: "storeClaimCapacity";
      readonly storage: string;
      readonly conditions: readonly PersistentVolumeClaimCondition[];
    }
  /** Ends the pass with an error: it is retried. */
  | { readonly step: "fail"; readonly error: unknown }
  /** The objects do not fit together: as `fail`, until they have changed. */
  | { readonly step: "refuse"; readonly message: string }
  | { readonly step: "settle" };

/** Whether the claim is bound and asks for more than it has. */
export function asksForMore(claim: PersistentVolumeClaim): boolean {
  if (claim.status?.phase !== "Bound") return false;
  return requestedSize(claim).compare(parseQuantity(claim.status.capacity?.storage ?? "0")) > 0;
}

/** The size that a claim asks for. */
export function requestedSize(claim: PersistentVolumeClaim): Quantity {
  return parseQuantity(claim.spec?.resources?.requests?.storage ?? "0");
}

/** Decides on the next step. */
export function decideExpandStep(observed: ExpandObservation): ExpandStep {
  const { claim, volume, expander, failure } = observed;
  if (failure !== undefined) return afterFailure(observed, failure.error);
  if (volume === undefined) return refuse(claim, "does not exist");
  if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
    return refuse(claim, "is not bound to it (claimRef differs)");
  }
  switch (expander.kind) {
    case "external":
      return leaveToResizer(observed, expander.inTreePlugin, expander.driver);
    case "none":
      return reportThen(observed, { step: "settle" }, expander.eventType, "ExternalExpanding", noPlugin);
    case "in-tree":
      return expandInTree(observed, volume, expander.plugin);
  }
}

const noPlugin =
  "Ignoring the PVC: didn't find a plugin capable of expanding the volume; " +
  "waiting for an external controller to process this PVC.";

function leaveToResizer(observed: ExpandObservation, inTreePlugin: string, driver: string): ExpandStep {
  const message = `CSI migration enabled for ${inTreePlugin}; waiting for external resizer to expand the pvc`;
  const annotated = observed.claim.metadata.annotations?.[storageResizerAnnotation] === driver;
  const next: ExpandStep = annotated ? { step: "settle" } : { step: "annotateResizer", resizer: driver };
  return reportThen(observed, next, "Normal", "ExternalExpanding", message);
}

function expandInTree(
  observed: ExpandObservation,
  volume: PersistentVolume,
  plugin: Pick<ExpandableVolumePlugin, "pluginName" | "requiresFSResize">,
): ExpandStep {
  const { claim, grownTo } = observed;
  if (observed.isFinished === true) {
    const message = `ExpandVolume succeeded for volume ${keyOf(claim)}`;
    return reportThen(observed, { step: "settle" }, "Normal", "VolumeResizeSuccessful", message);
  }
  const resizing = conditionsWith(observed, "Resizing");
  if (!isMarked(observed, plugin.pluginName, resizing)) {
    return { step: "markResizing", resizer: plugin.pluginName, conditions: resizing };
  }
  const from = parseQuantity(volume.spec?.capacity?.storage ?? "0");
  const to = requestedSize(claim);
  // One that is large enough may have been grown by a pass that ended before it wrote the claim.
  if (grownTo === undefined && from.compare(to) < 0) return { step: "expandDevice", from, to };
  if (grownTo !== undefined && from.compare(parseQuantity(grownTo)) !== 0) {
    return { step: "storeCapacity", storage: grownTo };
  }
  const needsFileSystem = plugin.requiresFSResize() && volume.spec?.volumeMode !== "Block";
  return needsFileSystem ? leaveToNode(observed) : finish(observed, from);
}

/** The file system grows on the node. */
function leaveToNode(observed: ExpandObservation): ExpandStep {
  const conditions = conditionsWith(observed, "FileSystemResizePending", fileSystemPending);
  return { step: "markFileSystemResizePending", conditions };
}

function finish(observed: ExpandObservation, size: Quantity): ExpandStep {
  return { step: "storeClaimCapacity", storage: size.toString(), conditions: conditionsWith(observed) };
}

const fileSystemPending =
  "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";

/** The claim's conditions with one of the managed ones, or none of them. */
function conditionsWith(
  { claim, now }: ExpandObservation,
  type?: "Resizing" | "FileSystemResizePending",
  message?: string,
): readonly PersistentVolumeClaimCondition[] {
  const condition = {
    status: "True",
    lastTransitionTime: now,
    ...(message === undefined ? {} : { message }),
  };
  const wanted = type === undefined ? [] : [{ type, ...condition }];
  return mergedResizeConditions(claim.status?.conditions ?? [], wanted);
}

/** The claim names this expander and has exactly these conditions, or was given them by this pass. */
function isMarked(
  { claim, isMarked: byThisPass }: ExpandObservation,
  resizer: string,
  conditions: readonly PersistentVolumeClaimCondition[],
): boolean {
  if (byThisPass === true) return true;
  if (claim.metadata.annotations?.[storageResizerAnnotation] !== resizer) return false;
  const present = claim.status?.conditions ?? [];
  return (
    present.length === conditions.length &&
    conditions.every((condition, index) => condition === present[index])
  );
}

function afterFailure(observed: ExpandObservation, error: unknown): ExpandStep {
  const { claim, expander } = observed;
  const fail: ExpandStep = { step: "fail", error };
  if (expander.kind === "external") {
    const message = `Error setting resizer annotation to pvc ${keyOf(claim)}, with error ${errorChain(error)}`;
    return reportThen(observed, fail, "Warning", "ExternalExpanding", message);
  }
  const plugin = expander.kind === "in-tree" ? expander.plugin.pluginName : "";
  const message = `error expanding volume "${keyOf(claim)}" of plugin "${plugin}": ${errorChain(error)}`;
  return reportThen(observed, fail, "Warning", "VolumeResizeFailed", message);
}

function reportThen(
  { isReported }: ExpandObservation,
  next: ExpandStep,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): ExpandStep {
  return isReported === true ? next : { step: "report", type, reason, message };
}

function refuse(claim: Stored<PersistentVolumeClaim>, why: string): ExpandStep {
  return {
    step: "refuse",
    message: `claim ${keyOf(claim)}: volume ${claim.spec?.volumeName ?? ""} ${why}`,
  };
}
