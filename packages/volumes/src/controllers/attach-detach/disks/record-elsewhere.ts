/** What an attach leaves in the actual state. Source: docs/behaviour/controllers.md A7 (dangling attach). */
import { splitUniqueName } from "../../../framework/unique-volume-name.ts";
import type { NewAttachment } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import type { DesiredVolume } from "../desired-state.ts";
import { csiAttachmentName } from "../volume-identity.ts";

/**
 * The disk is on another node. Unless that node is known to have it (an attachment under any name, or a
 * VolumeAttachment), it is recorded as uncertain there, and detached if no pod wants it.
 */
export function recordElsewhere(
  context: AttachDetachContext,
  volume: DesiredVolume,
  currentNode: string,
  devicePath: string,
): void {
  const { identity } = volume;
  if (context.actual.ofIdentity(identity).some(({ nodeName }) => nodeName === currentNode)) return;
  const name = csiAttachmentName(identity, currentNode);
  if (name !== undefined && context.caches.attachments.get(name) !== undefined) return;
  context.actual.put({
    ...attachmentOf(volume),
    nodeName: currentNode,
    devicePath,
    confirmed: false,
    dangling: true,
  });
}

/** The volume as an attachment, whatever became of it. */
export function attachmentOf(volume: DesiredVolume): Omit<NewAttachment, "devicePath" | "confirmed"> {
  const { nodeName, uniqueName, identity, pluginName, spec } = volume;
  const { volumeName } = splitUniqueName(uniqueName);
  return { nodeName, uniqueName, identity, pluginName, volumeName, spec };
}
