/** What one pass over a VolumeAttachment knows: the input of {@link decideAttachStep}. */
import {
  type CSINode,
  hasFinalizer,
  isDeleting,
  type PersistentVolume,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { volumeNameOf } from "../common/attachments.ts";
import type { AttachContext } from "./attach-context.ts";
import type { AttachRules } from "./attach-rules.ts";

/** A failure of this pass, and how far it was reported. */
export interface AttachFailure {
  readonly error: unknown;
  readonly isEmitted?: boolean;
  readonly isReported?: boolean;
}

/** What the actions of this pass have read and done. */
export interface AttachProgress {
  /** The values of the volume's secret, once read. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** What the Node announces, once read. */
  readonly announced?: { readonly nodeId: string | undefined };
  /** The answer of ControllerPublishVolume. */
  readonly publishContext?: Readonly<Record<string, string>>;
  /** ControllerUnpublishVolume has succeeded. */
  readonly isUnpublished?: boolean;
  /** The status says how it ended, or the attachment is gone. */
  readonly isReported?: boolean;
  readonly failure?: AttachFailure;
}

/** What one pass over a VolumeAttachment knows. */
export interface ObservedAttachment {
  readonly attachment: Stored<VolumeAttachment>;
  /** The PersistentVolume that the attachment names. */
  readonly volume: Stored<PersistentVolume> | undefined;
  /** The attacher's finalizer is being taken off this very state of the volume. */
  readonly isVolumeReleased: boolean;
  readonly csiNode: CSINode | undefined;
  /** The driver's own list contradicts the status, so the call is made once more. */
  readonly isForced: boolean;
  readonly rules: AttachRules;
  readonly progress: AttachProgress;
}

/** Reads the caches for the attachment of this name; undefined: it is gone, or of another driver. */
export function observeAttachment(context: AttachContext, name: string): ObservedAttachment | undefined {
  const attachment = context.attachments.get(name);
  if (attachment === undefined || attachment.spec?.attacher !== context.rules.driverName) {
    context.forced.delete(name);
    return undefined;
  }
  const volume = context.volumes.get(volumeNameOf(attachment) ?? "");
  return {
    attachment,
    volume,
    isVolumeReleased: volume !== undefined && context.releases.isReleased(volume),
    csiNode: context.csiNodes.get(attachment.spec.nodeName),
    isForced: context.forced.has(name),
    rules: context.rules,
    progress: {},
  };
}

/** What an attachment asks for. */
export type AttachGoal = "attach" | "detach" | "none";

/**
 * Attached and not deleted: done. Deleted: detach for as long as our finalizer is there; without it nothing was ever
 * published (docs/behaviour/sidecars.md 3.1, 3.2).
 * @param isForced the driver's own list contradicts the status, so the call is made once more
 */
export function attachGoal(va: VolumeAttachment, finalizer: string, isForced: boolean): AttachGoal {
  if (!isDeleting(va)) return va.status?.attached === true && !isForced ? "none" : "attach";
  const isHeld = hasFinalizer(va, finalizer);
  return isHeld || isForced ? "detach" : "none";
}
