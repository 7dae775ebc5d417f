/**
 * Compares what attachments say with what the driver lists as published (sidecars.md §3.4). A contradiction is
 * not written anywhere: the attachment is only looked at once more, with the call forced.
 */
import type { CsiCallOptions } from "@longshore/csi";
import type { Stored, VolumeAttachment } from "@longshore/kube";
import { isPVMigratable, repairVolumeHandle } from "@longshore/translation";
import type { AttachContext } from "./attach-reconciler.ts";
import { nodeIdFor, sourceOf, volumeOfPv, volumeOfSpec } from "./attached-volume.ts";

/** Node ids by volume handle. */
export type PublishedVolumes = ReadonlyMap<string, readonly string[]>;

/** Reads the whole list, or fails. @param maxEntries most entries of one page; 0: the driver decides */
export async function listPublished(
  context: AttachContext,
  maxEntries: number,
  options: CsiCallOptions,
): Promise<PublishedVolumes> {
  const published = new Map<string, readonly string[]>();
  let startingToken = "";
  do {
    const page = await context.driver.csi.controller.listVolumes({ maxEntries, startingToken }, options);
    for (const { volume, status } of page.entries) {
      if (volume !== undefined) published.set(volume.volumeId, status?.publishedNodeIds ?? []);
    }
    startingToken = page.nextToken;
  } while (startingToken !== "");
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
  const nodeId = nodeIdFor(context.csiNodes.get(va.spec.nodeName), driver, va.spec.nodeName, va);
  const source = sourceOf(va);
  if ("inline" in source) {
    return (published.get(volumeOfSpec(source.inline).csi.volumeHandle) ?? []).includes(nodeId);
  }
  const pv = context.volumes.get(source.pvName);
  if (pv === undefined) throw new Error(`PersistentVolume "${source.pvName}" not found`);
  const handle = volumeOfPv(pv).csi.volumeHandle;
  const repaired = isPVMigratable(pv) ? repairVolumeHandle(driver, handle, nodeId) : handle;
  return (published.get(repaired) ?? []).includes(nodeId);
}
