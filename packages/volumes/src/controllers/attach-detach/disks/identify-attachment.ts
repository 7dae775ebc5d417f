/** What is done once it is known which disk a recovered attachment is. Source: docs/behaviour/controllers.md A6. */
import { splitUniqueName } from "../../../framework/unique-volume-name.ts";
import type { Attachment } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { isProvisional, type VolumeIdentity } from "../volume-identity.ts";

/**
 * The attachment was known by a name alone: that of its VolumeAttachment, or an in-tree name that says too little. It becomes
 * one of the disk that it is, as certain as it was: from then on one key has the disk, and the passes over that attach or detach it.
 */
export function identifyAttachment(
  { actual, desired, wakeDisk }: AttachDetachContext,
  attachment: Attachment,
  disk: VolumeIdentity,
): void {
  const { nodeName } = attachment;
  wakeDisk(disk);
  if (!isProvisional(attachment.identity)) {
    actual.identify(attachment, disk);
    return;
  }
  actual.put({
    ...splitUniqueName(disk),
    nodeName,
    uniqueName: disk,
    identity: disk,
    spec: desired.get(nodeName, disk)?.spec,
    devicePath: "",
    confirmed: false,
  });
  actual.remove(attachment);
}
