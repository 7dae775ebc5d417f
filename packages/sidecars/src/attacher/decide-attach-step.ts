/**
 * The attacher's decision for one VolumeAttachment (docs/behaviour/sidecars.md 3.1, 3.2). Pure.
 *
 *     created ─► addVolumeFinalizer ─► readSecret ─► readAnnouncedNodeId ─► storeIntent ─► publish ─► reportAttached
 *     deleted ─► readSecret ─► readAnnouncedNodeId ─► unpublish ─► removeFinalizer ─► gone, or reportDetached
 *     failed  ─► emitError ─► reportError ─► fail: the queue backs off
 *
 * Invariants
 *  - Our finalizers are stored before ControllerPublishVolume is first called, so that a crash between the two can
 *    repeat a call but cannot lose track of a volume.
 *  - Whatever ControllerPublishVolume answered, the finalizer stays: every failure may have attached.
 *  - The finalizer goes before the status is cleared; the other way round a crash would unpublish twice.
 *  - A pass may stop at any step and begin again; a second pass changes nothing more.
 */
import {
  hasFinalizer,
  isDeleting,
  type PersistentVolume,
  type SecretReference,
  type Stored,
} from "@longshore/kube";
import { attachCapability, type CapabilityInit, nodeIdAnnotation } from "@longshore/storage";
import {
  type AttachedVolume,
  AttachmentError,
  knownNodeId,
  nodeIdMissing,
  sourceOf,
  volumeOfPv,
  volumeOfSpec,
} from "./attached-volume.ts";
import { attachGoal, type ObservedAttachment } from "./observed-attachment.ts";

/** A request to the driver but for the secret, which only the observation holds. */
export interface UnpublishParameters {
  readonly volumeId: string;
  readonly nodeId: string;
}

/** The same of ControllerPublishVolume. */
export interface PublishParameters extends UnpublishParameters {
  readonly volumeCapability: CapabilityInit;
  readonly readonly: boolean;
  readonly volumeContext: Record<string, string>;
}

/** Field of the status that reports the failure, with the reason of its event. */
export type FailedGoal = "attach" | "detach";

/** One step over a VolumeAttachment. */
export type AttachStep =
  /** Nothing is left to do. */
  | { readonly step: "settle" }
  /** Our finalizer is being taken off the volume: begin again when the cache shows that. */
  | { readonly step: "waitForVolumeRelease" }
  | { readonly step: "addVolumeFinalizer"; readonly volume: Stored<PersistentVolume> }
  | { readonly step: "readSecret"; readonly reference: SecretReference }
  | { readonly step: "readAnnouncedNodeId"; readonly nodeName: string }
  /** Finalizer and node id on the attachment, in one write. */
  | { readonly step: "storeIntent"; readonly nodeId: string }
  | { readonly step: "publish"; readonly parameters: PublishParameters; readonly migrated: boolean }
  | { readonly step: "reportAttached"; readonly publishContext: Readonly<Record<string, string>> }
  | { readonly step: "unpublish"; readonly parameters: UnpublishParameters; readonly migrated: boolean }
  | { readonly step: "removeFinalizer" }
  | { readonly step: "reportDetached" }
  | { readonly step: "emitError"; readonly goal: FailedGoal; readonly error: unknown }
  | { readonly step: "reportError"; readonly goal: FailedGoal; readonly error: unknown }
  | { readonly step: "fail"; readonly error: unknown };

/** The next step. */
export function decideAttachStep(observed: ObservedAttachment): AttachStep {
  const { attachment, isForced, rules, progress } = observed;
  if (progress.isReported) return { step: "settle" };
  // Once our finalizer is off, the attachment asks for nothing any more, though its status may still be due.
  const goal = progress.isUnpublished ? "detach" : attachGoal(attachment, rules.finalizer, isForced);
  if (goal === "none") return { step: "settle" };
  if (progress.failure?.isReported) return { step: "fail", error: progress.failure.error };
  if (progress.failure?.isEmitted) return { step: "reportError", goal, error: progress.failure.error };
  if (progress.failure !== undefined) return { step: "emitError", goal, error: progress.failure.error };
  try {
    return goal === "attach" ? decideAttach(observed) : decideDetach(observed);
  } catch (error) {
    // What the objects do not allow is reported as a failed call is.
    return { step: "emitError", goal, error };
  }
}

function decideAttach(observed: ObservedAttachment): AttachStep {
  const { attachment, rules, progress } = observed;
  const { publishContext } = progress;
  if (publishContext !== undefined) return { step: "reportAttached", publishContext };
  const holding = decideHolding(observed);
  if (holding !== undefined) return holding;
  const volume = volumeOf(observed);
  const { spec, csi, migrated } = volume;
  const volumeCapability = attachCapability(spec, rules, rules.defaultFsType);
  const node = decideInputs(observed, volume, undefined);
  if ("step" in node) return node;
  const { finalizers = [], annotations } = attachment.metadata;
  const isIntentStored =
    finalizers.includes(rules.finalizer) && annotations?.[nodeIdAnnotation] === node.nodeId;
  if (!isIntentStored) return { step: "storeIntent", nodeId: node.nodeId };
  const parameters = {
    volumeId: csi.volumeHandle,
    nodeId: node.nodeId,
    volumeCapability,
    // CSI: without PUBLISH_READONLY the field must be false, also for a read-only volume (docs/behaviour/csi-spec-notes.md 4).
    readonly: csi.readOnly === true && rules.publishesReadonly,
    volumeContext: csi.volumeAttributes ?? {},
  };
  return { step: "publish", parameters, migrated };
}

/** The PersistentVolume is held by our finalizer, so that it can still be detached when it is deleted; undefined: it is. */
function decideHolding(observed: ObservedAttachment): AttachStep | undefined {
  const source = sourceOf(observed.attachment);
  if ("inline" in source) return undefined;
  const volume = volumeNamed(observed, source.pvName);
  if (isDeleting(volume))
    throw new AttachmentError(`PersistentVolume "${source.pvName}" is marked for deletion`);
  if (observed.isVolumeReleased) return { step: "waitForVolumeRelease" };
  const isHeld = hasFinalizer(volume, observed.rules.finalizer);
  return isHeld ? undefined : { step: "addVolumeFinalizer", volume };
}

function decideDetach(observed: ObservedAttachment): AttachStep {
  const { attachment, rules, progress } = observed;
  if (progress.isUnpublished) {
    const { finalizers = [] } = attachment.metadata;
    if (finalizers.includes(rules.finalizer)) return { step: "removeFinalizer" };
    // Nothing held it but us, so it is gone, and there is no status to write to.
    return isDeleting(attachment) && finalizers.length === 0
      ? { step: "settle" }
      : { step: "reportDetached" };
  }
  const volume = volumeOf(observed);
  const node = decideInputs(observed, volume, attachment);
  if ("step" in node) return node;
  const parameters = { volumeId: volume.csi.volumeHandle, nodeId: node.nodeId };
  return { step: "unpublish", parameters, migrated: volume.migrated };
}

/**
 * What is still to be read before the driver can be called, or else the id of the node.
 * @param remembered the attachment, when its own annotation may name the node's id: for detaching only
 */
function decideInputs(
  { attachment, csiNode, rules, progress }: ObservedAttachment,
  { csi }: AttachedVolume,
  remembered: ObservedAttachment["attachment"] | undefined,
): AttachStep | { readonly nodeId: string } {
  const reference = csi.controllerPublishSecretRef ?? undefined;
  if (reference !== undefined && progress.secrets === undefined) return { step: "readSecret", reference };
  const { nodeName } = attachment.spec;
  const nodeId = knownNodeId(csiNode, rules.driverName, remembered) ?? progress.announced?.nodeId;
  if (nodeId !== undefined) return { nodeId };
  // A kubelet that writes CSINodes takes its annotation away with the entry: there is nothing else to learn.
  const mayAsk = csiNode === undefined && rules.readsAnnouncedNodeIds && progress.announced === undefined;
  if (mayAsk) return { step: "readAnnouncedNodeId", nodeName };
  throw nodeIdMissing(csiNode, rules.driverName, nodeName);
}

function volumeOf(observed: ObservedAttachment): AttachedVolume {
  const source = sourceOf(observed.attachment);
  return "inline" in source ? volumeOfSpec(source.inline) : volumeOfPv(volumeNamed(observed, source.pvName));
}

function volumeNamed({ volume }: ObservedAttachment, pvName: string): Stored<PersistentVolume> {
  if (volume === undefined) throw new AttachmentError(`PersistentVolume "${pvName}" not found`);
  return volume;
}
