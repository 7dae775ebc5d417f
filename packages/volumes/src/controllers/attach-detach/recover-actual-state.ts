/**
 * Rebuilds the actual state at start: from the node statuses and their records of uncertain volumes, then
 * from the VolumeAttachments, so that neither a lost status entry, an operation that ended with its controller,
 * nor an inline volume whose pod vanished meanwhile strands an attachment.
 * Source: docs/behaviour/controllers.md A6; docs/contract.md C4.
 */
import type { Node, PersistentVolume, Stored, VolumeAttachment } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { attachmentName, csiVolumeName, uncertainVolumesOf } from "@longshore/storage";
import { splitUniqueName, uniqueNameOf } from "../../framework/unique-volume-name.ts";
import { specOfPersistentVolume, type VolumeSpec } from "../../framework/volume-spec.ts";
import { csiPluginName, isAttachmentName, parseCsiVolumeName } from "../../plugins/csi/csi-names.ts";
import type { Attachment } from "./actual-state.ts";
import { type AttachDetachContext, managedNodeAnnotation } from "./attach-detach-context.ts";
import { csiSpecOf } from "./volume-identity.ts";

/** Fills the actual state from the caches, which have synced. */
export function recoverActualState(context: AttachDetachContext): void {
  for (const node of context.caches.nodes.list()) {
    for (const { name, devicePath } of node.status?.volumesAttached ?? []) {
      recoverNamed(context, node.metadata.name, name, { devicePath, confirmed: true });
    }
    recoverRecorded(context, node);
    const { version } = context.actual.report(node.metadata.name);
    context.actual.written(node.metadata.name, version); // The status says it already.
  }
  // After the statuses: a VolumeAttachment is uncertain only where no status or record names its volume.
  const known = attachmentNames(context.actual.all());
  for (const attachment of context.caches.attachments.list()) recoverAttachment(context, attachment, known);
}

/** What the node's record names: also that of a Node which its agent has made again, with the Flexvolumes that it has found mounted. */
export function recoverRecorded(context: AttachDetachContext, node: Stored<Node>): void {
  for (const name of uncertainVolumesOf(node)) {
    recoverNamed(context, node.metadata.name, name, { devicePath: "", confirmed: false });
  }
}

/** A name in a node's status or record: attached for sure or perhaps, without a spec until a pod brings one. */
function recoverNamed(
  context: AttachDetachContext,
  nodeName: string,
  uniqueName: string,
  known: Pick<Attachment, "devicePath" | "confirmed">,
): void {
  try {
    const { pluginName, volumeName } = splitUniqueName(uniqueName);
    const identity = context.identityOfName(uniqueName);
    context.actual.put({
      nodeName,
      uniqueName,
      identity,
      pluginName,
      volumeName,
      spec: undefined,
      // What is in the record may have been taken off the list, and its detach given up, before the start.
      wasListed: true,
      ...known,
    });
  } catch (error) {
    context.env.logger.warn("a node's entry for an attached volume is not understood", {
      node: nodeName,
      error: errorChain(error),
    });
  }
}

/**
 * A VolumeAttachment that no status entry stands for: uncertain.
 * @param known names of the VolumeAttachments that the actual state has an entry for
 */
export function recoverAttachment(
  context: AttachDetachContext,
  attachment: Stored<VolumeAttachment>,
  known: ReadonlySet<string> = attachmentNames(context.actual.on(attachment.spec.nodeName)),
): void {
  const { nodeName, attacher } = attachment.spec;
  const node = context.caches.nodes.get(nodeName);
  // On a node that is there and attaches for itself, attachments are its own affair.
  if (node !== undefined && node.metadata.annotations?.[managedNodeAnnotation] === undefined) return;
  if (known.has(attachment.metadata.name)) return;
  const spec = specOfAttachment(context, attachment);
  const csi = spec?.persistentVolume?.spec?.csi;
  const named =
    csi != null &&
    csi.driver === attacher &&
    attachmentName(csi.volumeHandle, attacher, nodeName) === attachment.metadata.name;
  if (!named) {
    // Not one of ours, or its volume is gone: then its own name is enough to detach it.
    if (!isAttachmentName(attachment.metadata.name)) return;
  }
  const volumeName = named ? csiVolumeName(csi.driver, csi.volumeHandle) : attachment.metadata.name;
  const uniqueName = uniqueNameOf(csiPluginName, volumeName);
  context.actual.put({
    nodeName,
    uniqueName,
    identity: uniqueName,
    pluginName: csiPluginName,
    volumeName,
    spec: named ? spec : undefined,
    devicePath: "",
    confirmed: false,
  });
  context.wakeDisk(uniqueName);
}

/** Names of the VolumeAttachments that the entries stand for. */
function attachmentNames(entries: readonly Attachment[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { pluginName, volumeName, nodeName } of entries) {
    if (pluginName !== csiPluginName) continue;
    try {
      const { driver, volumeHandle } = parseCsiVolumeName(volumeName);
      names.add(attachmentName(volumeHandle, driver, nodeName));
    } catch {
      // A name that is no volume's stands for no VolumeAttachment.
    }
  }
  return names;
}

/** The CSI spec behind a VolumeAttachment, or undefined when its volume is not there. */
function specOfAttachment(
  context: AttachDetachContext,
  attachment: Stored<VolumeAttachment>,
): VolumeSpec | undefined {
  const { persistentVolumeName, inlineVolumeSpec } = attachment.spec.source;
  if (inlineVolumeSpec != null) {
    const csi = inlineVolumeSpec.csi;
    const name = csi == null ? "" : `${csi.driver}-${csi.volumeHandle}`;
    const persistentVolume: PersistentVolume = { metadata: { name }, spec: inlineVolumeSpec };
    return { persistentVolume, readOnly: false, inlineVolumeSpecForCsiMigration: true, isMigrated: true };
  }
  const pv = persistentVolumeName == null ? undefined : context.caches.volumes.get(persistentVolumeName);
  return pv === undefined ? undefined : csiSpecOf(context.migration, specOfPersistentVolume(pv, false), "");
}
