/**
 * Compares what attachments say with what the driver lists as published (docs/behaviour/sidecars.md 3.4). A
 * contradiction is not stored: the attachment is only queued again, with the call forced.
 */
import { type CsiCallOptions, entriesOfPages } from "@longshore/csi";
import type { Stored, VolumeAttachment } from "@longshore/kube";
import { repairVolumeHandle } from "@longshore/translation";
import type { AttachContext } from "./attach-context.ts";
import { type AttachedVolume, knownNodeId, sourceOf, volumeOfPv, volumeOfSpec } from "./attached-volume.ts";

/** Node ids by volume handle. */
export type PublishedVolumes = ReadonlyMap<string, readonly string[]>;

/** Reads the whole list, or fails. @param maxEntries most entries of one page; 0: the driver decides */
export async function listPublished(
  context: AttachContext,
  maxEntries: number,
  options: CsiCallOptions,
): Promise<PublishedVolumes> {
  const published = new Map<string, readonly string[]>();
  const { controller } = context.driver.csi;
  const entries = entriesOfPages("ListVolumes", (startingToken) =>
    controller.listVolumes({ maxEntries, startingToken }, options),
  );
  for await (const { volume, status } of entries) {
    if (volume !== undefined) published.set(volume.volumeId, status?.publishedNodeIds ?? []);
  }
  return published;
}

/** The attachments that the list contradicts. One that cannot be looked up is left as it is. */
export function contradicted(
  context: AttachContext,
  attachments: readonly Stored<VolumeAttachment>[],
  published: PublishedVolumes,
): readonly Stored<VolumeAttachment>[] {
  return attachments.filter((va) => {
    if (va.spec?.attacher !== context.driver.name) return false;
    try {
      return isPublished(context, va, published) !== (va.status?.attached ?? false);
    } catch (error) {
      context.env.logger.debug("an attachment cannot be compared", { attachment: va.metadata.name, error });
      return false;
    }
  });
}

function isPublished(context: AttachContext, va: VolumeAttachment, published: PublishedVolumes): boolean {
  const { name: driver } = context.driver;
  const nodeId = knownNodeId(context.csiNodes.get(va.spec.nodeName), driver, va);
  if (nodeId === undefined) throw new Error(`the id of node "${va.spec.nodeName}" is not known`);
  const { csi, migrated } = volumeOf(context, va);
  // What the translation could not know, the driver does, and lists the volume with it.
  const isRepaired = migrated && context.driver.inTreeName !== undefined;
  const handle = isRepaired ? repairVolumeHandle(driver, csi.volumeHandle, nodeId) : csi.volumeHandle;
  return (published.get(handle) ?? []).includes(nodeId);
}

function volumeOf(context: AttachContext, va: VolumeAttachment): AttachedVolume {
  const source = sourceOf(va);
  if ("inline" in source) return volumeOfSpec(source.inline);
  const pv = context.volumes.get(source.pvName);
  if (pv === undefined) throw new Error(`PersistentVolume "${source.pvName}" not found`);
  return volumeOfPv(pv);
}
