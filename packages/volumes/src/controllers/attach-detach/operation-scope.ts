/** What an operation on an attachment, or on one that is wanted, conflicts with. */
import { isMultiAttachAllowed } from "../../framework/unique-volume-name.ts";
import type { Attachment } from "./actual-state.ts";
import type { OperationScope } from "./disk-operations.ts";

/** What conflicts with an operation on the attachment. */
export function scopeOf({
  identity,
  nodeName,
  spec,
}: Pick<Attachment, "identity" | "nodeName" | "spec">): OperationScope {
  return { identity, nodeName, isShared: isMultiAttachAllowed(spec) };
}
