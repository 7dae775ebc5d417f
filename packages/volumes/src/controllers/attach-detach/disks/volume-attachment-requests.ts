/**
 * The requests by which CSI is asked to attach and to detach. Source: docs/behaviour/csi-plugin.md 4-7.
 *
 * Invariant: existence of the VolumeAttachment is the intent, deletion is the detach; an existing one is never changed.
 */
import { isAlreadyExists, resources, type Stored, type VolumeAttachment } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import { csiSourceOf } from "../../../plugins/csi/csi-names.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import type { DesiredVolume } from "../desired-state.ts";
import type { DiskOperation } from "../disk-operations.ts";

/** An attach through a VolumeAttachment did not succeed. */
export class AttachmentError extends Error {
  override readonly name = "AttachmentError";
}

/**
 * Stores the VolumeAttachment: one request. One that is there already stays as it is, and is read, since the cache may be
 * older than it. @throws AttachmentError
 */
export async function storeVolumeAttachment(
  context: AttachDetachContext,
  volume: DesiredVolume,
  signal: AbortSignal,
): Promise<Stored<VolumeAttachment>> {
  const { kube } = context.env;
  const attachment = attachmentFor(volume.spec, volume.nodeName);
  const name = attachment.metadata?.name ?? "";
  try {
    return await kube.create(resources.volumeAttachments, attachment, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) {
      const driver = attachment.spec.attacher;
      throw new AttachmentError(`VolumeAttachment ${name} of driver ${driver} was not created`, {
        cause: error,
      });
    }
  }
  const stored = await kube.get(resources.volumeAttachments, { name }, { signal });
  if (stored === undefined) throw new AttachmentError(`VolumeAttachment ${name} has been deleted`);
  return stored;
}

/**
 * Deletes the VolumeAttachment: one request where the cache has it. What the cache never had is read, since its absence
 * there says nothing about the detach.
 */
export async function deleteVolumeAttachment(
  context: AttachDetachContext,
  name: string | undefined,
  signal: AbortSignal,
): Promise<Partial<Pick<DiskOperation, "outcome" | "sinceVersion">>> {
  const { env, caches } = context;
  const done = { outcome: { kind: "done", devicePath: "" } } as const;
  if (name === undefined) throw new Error(`a volume of such a name has no VolumeAttachment`);
  // Before the DELETE: when that is answered, the cache may already have dropped the object.
  const isCached = caches.attachments.get(name) !== undefined;
  const isFound = await env.kube.delete(resources.volumeAttachments, { name }, { signal });
  if (!isFound) return done;
  if (isCached) return {};
  const live = await env.kube.get(resources.volumeAttachments, { name }, { signal });
  return live === undefined ? done : { sinceVersion: live.metadata.resourceVersion };
}

/** By the volume's name, or for a migrated inline volume by its spec. */
function attachmentFor(spec: VolumeSpec, nodeName: string): VolumeAttachment {
  const { driver, volumeHandle } = csiSourceOf(spec);
  const pv = spec.persistentVolume;
  const source =
    spec.inlineVolumeSpecForCsiMigration && pv?.spec !== undefined
      ? { inlineVolumeSpec: pv.spec }
      : { persistentVolumeName: pv?.metadata?.name ?? "" };
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name: attachmentName(volumeHandle, driver, nodeName) },
    spec: { attacher: driver, nodeName, source },
  };
}
