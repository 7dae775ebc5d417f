/**
 * The two operations of the attach/detach controller, as they run in the background.
 * Source: docs/behaviour/controllers.md A7 (detach, attach), A9 (the attachment that migration would have made).
 */
import { type Node, resources, type Stored, type VolumeAttachment } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { pluginsChangingOver } from "@longshore/storage";
import { gatesOfPlugin } from "../../csimigration/gates.ts";
import { DanglingAttachError } from "../../framework/controller-errors.ts";
import { splitUniqueName } from "../../framework/names.ts";
import type { AttachableVolumePlugin, Attacher } from "../../framework/plugin.ts";
import { specName } from "../../framework/spec.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { Attachment } from "./actual-state.ts";
import { listsPlugin } from "./backend-decision.ts";
import { type AttachDetachContext, formsAttached } from "./context.ts";
import type { DesiredVolume } from "./desired-state.ts";
import { isWanted, nodeUses } from "./detach-guards.ts";
import { driverIsAtWork } from "./pod-wishes.ts";
import { recoverAttachment } from "./recovery.ts";
import { csiAttachmentName } from "./volume-identity.ts";

/** Names of the operations, for back-off and metrics. */
export const operationNames = { attach: "volume_attach", detach: "volume_detach" } as const;

/** Longest time of one operation, in milliseconds: a plugin's own two minutes and the calls around it. */
export const operationTimeoutMs = 180_000;

/** A detach that must not happen now; to be tried again. */
export class DetachRefusedError extends Error {
  override readonly name = "DetachRefusedError";
}

/** An attach that must not happen now; to be decided again. */
export class AttachRefusedError extends Error {
  override readonly name = "AttachRefusedError";
}

/** The volume as an attachment, whatever became of it. */
export function attachmentOf(
  volume: DesiredVolume,
): Pick<Attachment, "nodeName" | "uniqueName" | "identity" | "pluginName" | "volumeName" | "spec"> {
  const { nodeName, uniqueName, identity, pluginName, spec } = volume;
  return {
    nodeName,
    uniqueName,
    identity,
    pluginName,
    volumeName: splitUniqueName(uniqueName).volumeName,
    spec,
  };
}

/**
 * Attaches and records the outcome.
 * @param intent what stands in the actual state for this very attach, and goes when nothing was asked of the plugin
 * @throws AttachRefusedError, or the plugin's failure, after it was recorded and reported
 */
export async function attachVolume(
  context: AttachDetachContext,
  volume: DesiredVolume,
  intent: Attachment | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, spec } = volume;
  const label = `volume "${specName(spec)}"`;
  let attacher: Attacher;
  try {
    await assertInTreeMayAttach(context, volume, signal);
    attacher = (await attachablePlugin(context, volume)).newAttacher();
  } catch (error) {
    if (intent !== undefined) context.actual.remove(intent);
    podEvent(
      context,
      volume,
      "Warning",
      "FailedAttachVolume",
      `AttachVolume.${error instanceof AttachRefusedError ? "Attach" : "NewAttacher"} failed for ${label} : ${errorChain(error)}`,
    );
    throw error;
  }
  const entry = attachmentOf(volume);
  let devicePath: string;
  try {
    devicePath = await attacher.attach(spec, nodeName, signal);
  } catch (error) {
    if (error instanceof DanglingAttachError) {
      if (intent !== undefined) context.actual.remove(intent); // It is elsewhere, so it is not here.
      recordDangling(context, volume, error);
    } else context.actual.put({ ...entry, devicePath: "", confirmed: false });
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

/**
 * Live checks right before an in-tree attach, when the node's record has the volume: that the node has not
 * changed over to CSI since it was decided and is not about to (its agent announces that before it looks at the
 * record, so one of the two sees the other), and that CSI does not hold the disk there. @throws AttachRefusedError
 */
async function assertInTreeMayAttach(
  context: AttachDetachContext,
  { nodeName, identity, inTreePlugin, pluginName }: DesiredVolume,
  signal: AbortSignal,
): Promise<void> {
  if (inTreePlugin === undefined || pluginName === csiPluginName || context.settings.compat) return;
  const { kube } = context.env;
  const [node, csiNode, attachment] = await Promise.all([
    kube.get(resources.nodes, { name: nodeName }, { signal }),
    kube.get(resources.csiNodes, { name: nodeName }, { signal }),
    liveAttachment(context, { identity, nodeName }, signal),
  ]);
  if (pluginsChangingOver(node).includes(inTreePlugin)) {
    throw new AttachRefusedError(`node ${nodeName} is about to hand ${inTreePlugin} over to CSI`);
  }
  if (csiNode !== undefined && listsPlugin(csiNode, inTreePlugin)) {
    throw new AttachRefusedError(`node ${nodeName} has handed ${inTreePlugin} over to CSI meanwhile`);
  }
  if (attachment !== undefined) {
    recoverAttachment(context, attachment); // Its maker is gone: it is detached when no pod wants it.
    throw new AttachRefusedError(
      `VolumeAttachment ${attachment.metadata.name} says that CSI has the disk on node ${nodeName}`,
    );
  }
}

/** The VolumeAttachment by which CSI has the disk on the node, as the API server has it now. */
async function liveAttachment(
  context: AttachDetachContext,
  { identity, nodeName }: Pick<Attachment, "identity" | "nodeName">,
  signal: AbortSignal,
): Promise<Stored<VolumeAttachment> | undefined> {
  const name = csiAttachmentName(identity, nodeName);
  if (name === undefined) return undefined;
  return context.env.kube.get(resources.volumeAttachments, { name }, { signal });
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
 * The disk is on another node. Unless that node is known to have it (an attachment under any name, or a
 * VolumeAttachment), it is recorded as uncertain there, and detached if no pod wants it.
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
    if (await isSurelyOfCsi(context, attachment, signal)) return;
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

/**
 * Whether CSI has the disk that the in-tree code was only presumed to have attached: then it is CSI's to detach,
 * and the presumption is given up. CSI attaches nothing while it stands, so this does not change meanwhile.
 */
async function isSurelyOfCsi(
  context: AttachDetachContext,
  attachment: Attachment,
  signal: AbortSignal,
): Promise<boolean> {
  if (attachment.confirmed || attachment.pluginName === csiPluginName) return false;
  if ((await liveAttachment(context, attachment, signal)) === undefined) return false;
  context.env.logger.warn("volume is left to CSI, which has a VolumeAttachment for it", {
    volume: attachment.uniqueName,
    node: attachment.nodeName,
  });
  context.actual.remove(attachment);
  context.onDetached(attachment);
  return true;
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

/** Records an event for every pod that waits for the volume. */
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
