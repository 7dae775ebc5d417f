/** The attacher's decision for one VolumeAttachment (docs/behaviour/sidecars.md 3.1, 3.2). Pure. */
import { isDeleting, type VolumeAttachment } from "@longshore/kube";

/** What one pass over a VolumeAttachment has to do. */
export type AttachStep =
  | { readonly kind: "none" }
  | { readonly kind: "attach" }
  | { readonly kind: "detach" };

/**
 * Attached and not deleted: done. Deleted: detach for as long as our finalizer is there; without it
 * nothing was ever published.
 * @param forced the driver's own list contradicts the status, so the call is made once more
 */
export function decideAttachStep(va: VolumeAttachment, finalizer: string, forced: boolean): AttachStep {
  if (!isDeleting(va)) {
    return va.status?.attached === true && !forced ? { kind: "none" } : { kind: "attach" };
  }
  const ours = (va.metadata?.finalizers ?? []).includes(finalizer);
  return ours || forced ? { kind: "detach" } : { kind: "none" };
}
