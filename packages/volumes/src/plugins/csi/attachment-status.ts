/** What a VolumeAttachment says to who waits for it. Source: docs/behaviour/csi-plugin.md 5. */
import { isDeleting, type Stored, type VolumeAttachment } from "@longshore/kube";

/** The verdict of one look at a VolumeAttachment. */
export type AttachmentVerdict =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "wait" };

const done: AttachmentVerdict = { kind: "done" };
const wait: AttachmentVerdict = { kind: "wait" };
const failed = (message: string): AttachmentVerdict => ({ kind: "failed", message });

/** Whether the volume is attached; `undefined` stands for an object that is gone. */
export function attachVerdict(attachment: Stored<VolumeAttachment> | undefined): AttachmentVerdict {
  if (attachment === undefined) return failed("volume attachment has been deleted");
  // Whatever `attached` says, it will not stay: wait until the object is gone and make a new one.
  if (isDeleting(attachment)) return failed("volume attachment is being deleted");
  if (attachment.status?.attached === true) return done;
  const error = attachment.status?.attachError;
  return error == null ? wait : failed(error.message ?? "attach failed");
}

/**
 * Whether the volume is detached.
 * @param seenAttached the object was seen attached after its deletion was requested: only then does
 *   `attached: false` say that the detach is done, and not that an attach never ended
 */
export function detachVerdict(
  attachment: Stored<VolumeAttachment> | undefined,
  seenAttached: boolean,
): AttachmentVerdict {
  if (attachment === undefined) return done;
  const error = attachment.status?.detachError;
  if (error != null) return failed(error.message ?? "detach failed");
  return seenAttached && attachment.status?.attached === false ? done : wait;
}
