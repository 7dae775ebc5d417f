/** What comes next for an attachment of a driver that attaches nothing (docs/behaviour/sidecars.md 3). Pure. */
import { isDeleting, type Stored, type VolumeAttachment } from "@longshore/kube";

/** One step over such an attachment. */
export type TrivialAttachStep = { readonly step: "settle" } | { readonly step: "reportAttached" };

/** The next step: one that is not being deleted is reported attached. */
export function decideTrivialAttach(va: Stored<VolumeAttachment>): TrivialAttachStep {
  return { step: isDeleting(va) || va.status?.attached === true ? "settle" : "reportAttached" };
}
