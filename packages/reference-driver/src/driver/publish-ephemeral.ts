/** NodePublishVolume of an ephemeral volume: it is made, and bound to the path of its pod. */
import { CsiStatusError, checkAbsolutePath, type NodePublishVolumeRequest } from "@longshore/csi";
import { isReaderMode } from "./check-capability.ts";
import {
  checkEphemeralCapability,
  ephemeralPlace,
  ephemeralSize,
  makeEphemeral,
  removeEphemeral,
} from "./ephemeral-volume.ts";
import { topMount } from "./mounted-paths.ts";
import type { NodeMachine } from "./node-machine.ts";
import { checkWriters, isPublished, publicationDigest, publishMount } from "./node-publish.ts";
import { type Publication, withoutPublication, withPublication } from "./node-records.ts";

/**
 * Makes the volume and publishes it. @param root the directory of all ephemeral volumes of the driver on the node
 *
 * A CO unpublishes no volume whose publish failed for good. So what a failed call has made is removed; where something is left,
 * the code says that the outcome is open. Source: docs/behaviour/csi-plugin.md 9.3.
 */
export async function publishEphemeral(
  node: NodeMachine,
  root: string,
  request: NodePublishVolumeRequest,
): Promise<Record<string, never>> {
  const { host, records } = node;
  const { volumeId } = request;
  const target = checkAbsolutePath("target_path", request.targetPath);
  const capability = checkEphemeralCapability(request.volumeCapability);
  const sizeBytes = ephemeralSize(request.volumeContext, capability);
  const place = ephemeralPlace(root, volumeId);
  const readOnly = request.readonly || isReaderMode(capability);
  const publication: Publication = {
    arguments: publicationDigest(capability, readOnly, sizeBytes),
    readOnly,
    isAttachedReadOnly: false,
    isBlock: false,
    isSingleWriter: true,
    ephemeralDir: root,
  };
  const record = await records.of(volumeId);
  await checkWriters(host, record, target, publication);
  const shown = { source: (await topMount(host, place.mountPath))?.source, readOnly };
  if (await isPublished(host, record, { target, publication, shown })) return {};
  // Before anything is made: NodeUnpublishVolume removes what the record names.
  await records.update(volumeId, (before) => withPublication(before, target, publication));
  try {
    await makeEphemeral(node, place, { sizeBytes, capability });
    await publishMount(host, { staging: place.mountPath, target, readOnly, capability });
  } catch (error) {
    // What an earlier call has made may hold data of a pod that goes on after a restart of its machine.
    if (record.publications[target] !== undefined) throw mayBeThere(volumeId, error);
    await withdraw(node, root, volumeId, target).catch(() => {
      throw mayBeThere(volumeId, error);
    });
    throw error;
  }
  return {};
}

async function withdraw(node: NodeMachine, root: string, volumeId: string, target: string): Promise<void> {
  await removeEphemeral(node.host, ephemeralPlace(root, volumeId));
  await node.records.update(volumeId, (before) => withoutPublication(before, target));
}

function mayBeThere(volumeId: string, cause: unknown): CsiStatusError {
  return new CsiStatusError(
    "UNAVAILABLE",
    `the ephemeral volume ${volumeId} is there and could not be published: publish it again, or unpublish it`,
    { cause },
  );
}
