/**
 * The two operations of the attach/detach controller, as they run in the background.
 * Source: spec controllers.md A7 (detach, attach), A9 (the attachment that migration would have made).
 */
import { type Node, resources, type Stored } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { gatesOfPlugin } from "../../csimigration/gates.ts";
import { DanglingAttachError } from "../../framework/controller-errors.ts";
import { splitUniqueName } from "../../framework/names.ts";
import type { AttachableVolumePlugin, Attacher } from "../../framework/plugin.ts";
import { specName } from "../../framework/spec.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { Attachment } from "./actual-state.ts";
import { type AttachDetachContext, formsAttached } from "./context.ts";
import type { DesiredVolume } from "./desired-state.ts";
import { isWanted, nodeUses } from "./detach-guards.ts";
import { driverIsAtWork } from "./pod-wishes.ts";
import { csiAttachmentName } from "./volume-identity.ts";

/** Names of the operations, for back-off and metrics. */
export const operationNames = { attach: "volume_attach", detach: "volume_detach" } as const;

/** Longest time of one operation, in milliseconds: a plugin's own two minutes and the calls around it. */
export const operationTimeoutMs = 180_000;

/** A detach that must not happen now; to be tried again. */
export class DetachRefusedError extends Error {
  override readonly name = "DetachRefusedError";
}

/** Attaches and records the outcome. @throws the plugin's failure, after it was recorded and told */
export async function attachVolume(
  context: AttachDetachContext,
  volume: DesiredVolume,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, spec, uniqueName, identity, pluginName } = volume;
  const label = `volume "${specName(spec)}"`;
  let attacher: Attacher;
  try {
    attacher = (await attachablePlugin(context, volume)).newAttacher();
  } catch (error) {
    podEvent(
      context,
      volume,
      "Warning",
      "FailedAttachVolume",
      `AttachVolume.NewAttacher failed for ${label} : ${errorChain(error)}`,
    );
    throw error;
  }
  const entry = {
    nodeName,
    uniqueName,
    identity,
    pluginName,
    volumeName: splitUniqueName(uniqueName).volumeName,
    spec,
  };
  let devicePath: string;
  try {
    devicePath = await attacher.attach(spec, nodeName, signal);
  } catch (error) {
    if (error instanceof DanglingAttachError) recordDangling(context, volume, error);
    else context.actual.put({ ...entry, devicePath: "", confirmed: false });
    podEvent(
      context,
      volume,
      "Warning",
      "FailedAttachVolume",
      `AttachVolume.Attach failed for ${label} : ${errorChain(error)}`,
    );
    throw error;
  }
  context.actual.put({ ...entry, devicePath, confirmed: true });
  podEvent(
    context,
    volume,
    "Normal",
    "SuccessfulAttachVolume",
    `AttachVolume.Attach succeeded for ${label} `,
  );
}

/** An attacher plugin for the volume, or an error that names what is missing. */
async function attachablePlugin(
  context: AttachDetachContext,
  volume: DesiredVolume,
): Promise<AttachableVolumePlugin> {
  const plugin = await context.plugins.findAttachablePluginBySpec(volume.spec);
  if (plugin === undefined)
    throw new Error(`volume plugin ${volume.pluginName} no longer attaches this volume`);
  return plugin;
}

/**
 * The disk is on another node. Unless somebody there answers for it (an attachment known under any
 * name, or a VolumeAttachment), it is recorded as uncertain there, and detached if no pod wants it.
 */
function recordDangling(
  context: AttachDetachContext,
  volume: DesiredVolume,
  { currentNode, devicePath }: DanglingAttachError,
): void {
  const { identity, uniqueName, pluginName, spec } = volume;
  if (context.actual.ofIdentity(identity).some(({ nodeName }) => nodeName === currentNode)) return;
  const name = csiAttachmentName(identity, currentNode);
  if (name !== undefined && context.caches.attachments.get(name) !== undefined) return;
  const { volumeName } = splitUniqueName(uniqueName);
  context.actual.put({
    nodeName: currentNode,
    uniqueName,
    identity,
    pluginName,
    volumeName,
    spec,
    devicePath,
    confirmed: false,
    dangling: true,
  });
}

/**
 * Detaches and records the outcome.
 * @param force the node is out of service or out of time: neither mounts nor the CSINode are asked
 * @throws DetachRefusedError, or the plugin's failure; the attachment is reported again
 */
export async function detachVolume(
  context: AttachDetachContext,
  attachment: Attachment,
  force: boolean,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (!force) await assertSafeToDetach(context, attachment, signal);
    if (isWanted(attachment, context.desired)) {
      throw new DetachRefusedError(
        `volume ${attachment.uniqueName} is wanted again on node ${attachment.nodeName}`,
      );
    }
    const plugin = context.plugins.findAttachablePluginByName(attachment.pluginName);
    if (plugin === undefined) throw new Error(`volume plugin ${attachment.pluginName} cannot detach`);
    attachment.detachTried = true;
    await plugin.newDetacher().detach(attachment.volumeName, attachment.nodeName, signal);
    if (attachment.pluginName !== csiPluginName) await deleteMigratedAttachment(context, attachment, signal);
  } catch (error) {
    context.actual.setReported(attachment, true);
    throw error;
  }
  context.actual.remove(attachment);
  context.onDetached(attachment);
  context.env.logger.info("volume detached", { volume: attachment.uniqueName, node: attachment.nodeName });
}

/** Live checks. A node that is gone holds nothing. @throws DetachRefusedError */
async function assertSafeToDetach(
  context: AttachDetachContext,
  attachment: Attachment,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, uniqueName } = attachment;
  const node: Stored<Node> | undefined = await context.env.kube.get(
    resources.nodes,
    { name: nodeName },
    { signal },
  );
  if (node === undefined) return;
  if (nodeUses(node, attachment, formsAttached(context, attachment))) {
    throw new DetachRefusedError(`volume ${uniqueName} is still in use by node ${nodeName}`);
  }
  const { inTreePlugin } = context.ownersOf(attachment);
  const driver = inTreePlugin === undefined ? undefined : gatesOfPlugin(inTreePlugin)?.driverName;
  if (driver === undefined || context.settings.compat) return;
  const csiNode = await context.env.kube.get(resources.csiNodes, { name: nodeName }, { signal });
  if (csiNode !== undefined || !(await driverIsAtWork(context, driver, nodeName, signal))) return;
  const message =
    `Volume ${uniqueName} is not detached from node ${nodeName}: its CSINode is missing although driver ` +
    `${driver} has VolumeAttachments there, so who is responsible is unknown; restart the kubelet to write it again`;
  context.events.event({ apiVersion: "v1", kind: "Node", ...node }, "Warning", "FailedDetachVolume", message);
  throw new DetachRefusedError(message);
}

/** A9: the VolumeAttachment that would exist if CSI had attached what the in-tree plugin detached. */
async function deleteMigratedAttachment(
  context: AttachDetachContext,
  attachment: Attachment,
  signal: AbortSignal,
): Promise<void> {
  const name = csiAttachmentName(attachment.identity, attachment.nodeName);
  if (name === undefined) return;
  await context.env.kube.delete(resources.volumeAttachments, { name }, { signal });
}

/** Tells every pod that waits for the volume. */
export function podEvent(
  context: AttachDetachContext,
  volume: DesiredVolume,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  for (const pod of volume.pods.values()) {
    context.events.event({ apiVersion: "v1", kind: "Pod", ...pod }, type, reason, message);
  }
}
