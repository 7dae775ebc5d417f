/**
 * Finds in-tree attachments that no API object records. This controller records its in-tree attaches
 * (`uncertain-volumes.ts` of storage), other controllers do not: when one of those stops during an attach or a
 * detach, neither a VolumeAttachment nor a node's status has an entry. If the pod is gone as well, the disk would
 * never be detached. CSI would take the disk over on that node, and could never attach it on another.
 *
 * While a provider has not answered, its plugin is in `unlisted` and CSI attaches nothing of it. Only disks of
 * PersistentVolumes count, on managed nodes. What is listed on a node whose Node is missing counts once that is there: its list of
 * attached volumes and its record of uncertain ones went with the Node that was deleted. What a migrated node uses by CSI does not
 * count. The provider is not asked once every node is migrated and every volume of the plugin is attached by CSI: then nothing in-tree can be left (C5).
 */
import { errorChain, withDeadline } from "@longshore/runtime";
import { splitUniqueName, uniqueNameOf, uniqueVolumeName } from "../../framework/unique-volume-name.ts";
import { type ListedAttachment, listsAttachments, type VolumePlugin } from "../../framework/volume-plugin.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { type AttachDetachContext, cacheIndexes, managedNode } from "./attach-detach-context.ts";
import { listsPlugin } from "./backend-decision.ts";
import { scopeOf } from "./operation-scope.ts";
import { csiAttachmentName, type VolumeIdentity } from "./volume-identity.ts";

/** Deadline of one question to a provider, in milliseconds. */
const listTimeoutMs = 30_000;

/** Marks the plugins whose providers have to be asked before CSI attaches anything of theirs. */
export function expectListing(context: AttachDetachContext): void {
  for (const plugin of context.plugins.plugins) {
    if (listsAttachments(plugin) && mayHaveAttachments(context, plugin))
      context.unlisted.set(plugin.pluginName, "");
  }
}

/** Asks the plugins; records as uncertain what no API object records. False: a provider did not answer. */
export async function recoverUnreported(context: AttachDetachContext, signal: AbortSignal): Promise<boolean> {
  let complete = true;
  for (const plugin of context.plugins.plugins) {
    if (!listsAttachments(plugin)) continue;
    const isFirst = context.unlisted.has(plugin.pluginName);
    if (!isFirst && !mayHaveAttachments(context, plugin)) continue;
    try {
      const listed = await withDeadline(context.env.clock, listTimeoutMs, signal, (within) =>
        plugin.listAttachments(within),
      );
      // A provider is asked again and again while another does not answer: only its last list counts.
      context.listedOnMissing.delete(plugin);
      for (const attachment of listed) adopt(context, plugin, attachment);
      context.unlisted.delete(plugin.pluginName);
      wakeWaiting(context, plugin.pluginName);
    } catch (error) {
      if (signal.aborted) throw error;
      complete = false;
      if (isFirst) {
        context.unlisted.set(plugin.pluginName, errorChain(error));
        wakeWaiting(context, plugin.pluginName);
      }
      context.env.logger.warn("attachments not listed: asked again with back-off", {
        plugin: plugin.pluginName,
        csiAttaches: !isFirst,
        error: errorChain(error),
      });
    }
  }
  return complete;
}

/** Whether the in-tree code of the plugin may have left anything attached. */
function mayHaveAttachments(context: AttachDetachContext, plugin: VolumePlugin): boolean {
  return isUsedBySomeNode(context, plugin) || hasLooseVolumes(context, plugin);
}

/** Whether any volume of the plugin is attached by no VolumeAttachment. */
function hasLooseVolumes(context: AttachDetachContext, plugin: VolumePlugin): boolean {
  const byCsi = new Set(
    context.caches.attachments
      .list()
      .filter(({ status }) => status?.attached === true)
      .map(({ spec }) => spec.source.persistentVolumeName),
  );
  return context.caches.volumes
    .list()
    .some((pv) => plugin.canSupport(specOfPersistentVolume(pv, false)) && !byCsi.has(pv.metadata.name));
}

/** Whether any managed node still uses the plugin's in-tree code. */
function isUsedBySomeNode(context: AttachDetachContext, plugin: VolumePlugin): boolean {
  return context.caches.nodes.list().some(({ metadata: { name } }) => {
    const csiNode = context.caches.csiNodes.get(name);
    const migrated = csiNode !== undefined && listsPlugin(csiNode, plugin.pluginName);
    return !migrated && managedNode(context, name) !== undefined;
  });
}

/** A Node was made (again): what was listed there while it was missing may still be there. */
export function adoptOn(context: AttachDetachContext, nodeName: string): void {
  for (const [plugin, byNode] of context.listedOnMissing) {
    const listed = byNode.get(nodeName) ?? [];
    byNode.delete(nodeName);
    for (const attachment of listed) adopt(context, plugin, attachment);
  }
}

function keepForLater(context: AttachDetachContext, plugin: VolumePlugin, listed: ListedAttachment): void {
  const byNode = context.listedOnMissing.get(plugin) ?? new Map<string, ListedAttachment[]>();
  context.listedOnMissing.set(plugin, byNode);
  const here = byNode.get(listed.nodeName);
  if (here === undefined) byNode.set(listed.nodeName, [listed]);
  else here.push(listed);
}

function adopt(context: AttachDetachContext, plugin: VolumePlugin, listed: ListedAttachment): void {
  const { nodeName, devicePath } = listed;
  if (context.caches.nodes.get(nodeName) === undefined) {
    keepForLater(context, plugin, listed);
    return;
  }
  if (managedNode(context, nodeName) === undefined) return;
  const identity = context.identityOfName(uniqueNameOf(plugin.pluginName, listed.volumeName));
  if (context.actual.ofIdentity(identity).some((known) => known.nodeName === nodeName)) return;
  const attachment = csiAttachmentName(identity, nodeName);
  if (attachment !== undefined && context.caches.attachments.get(attachment) !== undefined) return;
  if (isUsedByCsi(context, nodeName, plugin, identity)) return;
  const volume = context.caches.volumes
    .byIndex(cacheIndexes.volumesByIdentity, identity)
    .find((pv) => plugin.canSupport(specOfPersistentVolume(pv, false)));
  if (volume === undefined) return;
  const spec = specOfPersistentVolume(volume, false);
  // The list may be older than what the operation has done since.
  if (context.operations.isPending(scopeOf({ identity, nodeName, spec }))) return;
  const uniqueName = uniqueVolumeName(plugin, spec, "");
  const { volumeName } = splitUniqueName(uniqueName);
  context.env.logger.warn("attachment found that no object records", { volume: uniqueName, node: nodeName });
  context.actual.put({
    nodeName,
    uniqueName,
    identity,
    pluginName: plugin.pluginName,
    volumeName,
    spec,
    devicePath,
    confirmed: false,
    wasListed: true, // The provider has it there: what the node's status said of it is lost.
  });
  context.wakeDisk(identity);
}

/**
 * Whether the node has handed the plugin over, and uses the disk by CSI: the VolumeAttachment is lost, as after a restore of the API server,
 * and is made again for the pods that want it. To detach the disk would take it from under its mount.
 */
function isUsedByCsi(
  { caches }: AttachDetachContext,
  nodeName: string,
  { pluginName }: VolumePlugin,
  identity: VolumeIdentity,
): boolean {
  const csiNode = caches.csiNodes.get(nodeName);
  const inUse = caches.nodes.get(nodeName)?.status?.volumesInUse ?? [];
  return csiNode !== undefined && listsPlugin(csiNode, pluginName) && inUse.includes(identity);
}

/** The volumes of the plugin that pods want: CSI attaches them, or their pods get an event, now. */
function wakeWaiting(context: AttachDetachContext, inTreePlugin: string): void {
  for (const volume of context.desired.volumes()) {
    if (volume.inTreePlugin === inTreePlugin) context.wakeDisk(volume.identity);
  }
}
