/**
 * Volumes that the node itself attaches, before it mounts them, and detaches after it has unmounted them; the
 * attach/detach controller only records who has them (Ceph RBD).
 *
 * Invariant: the directory of the global mount, or of the mappings, is there before the volume is attached and goes
 * after it is detached, so that an agent that starts finds every volume that its predecessor may have attached.
 */
import type { Pod } from "@longshore/kube";
import { CloudError, type Instance } from "../../framework/ports.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { detachDisk, instanceNamed, missingDisk } from "./attach-disk.ts";
import { resolvedLink } from "./device-mounts.ts";
import { type AttachedByNode, diskSourceOf } from "./disk-description.ts";
import { type DiskNode, kubeletOf } from "./disk-node-half.ts";
import { InTreeVolumeError } from "./volume-source.ts";

/** A node that attaches. */
export interface AttachingNode extends DiskNode {
  readonly attached: AttachedByNode;
}

/** Attaches to this node; returns the device. Idempotent. `directory`: what shows a later agent that it may be attached. */
export async function attachOnNode(
  node: AttachingNode,
  directory: string,
  spec: VolumeSpec,
  pod: Pod | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { disks, cloud } = node;
  const { host, nodeName } = kubeletOf(node);
  const { volumeName, readOnly } = diskSourceOf(disks, spec);
  const credentials = await node.attached.credentialsOf(spec, pod, node.host, signal);
  const instance = await instanceNamed(cloud(), nodeName, signal);
  await host.makeDirectory(directory);
  try {
    const options = { readOnly, ...(credentials !== undefined && { credentials }) };
    const { devicePath } = await cloud().attachDisk(
      disks.names.diskIdOf(volumeName),
      instance.instanceId,
      signal,
      options,
    );
    return await resolvedLink(host, devicePath);
  } catch (error) {
    // Refused: nothing is attached that was not before, and then the directory is not empty or is a mount.
    if (error instanceof CloudError && error.code !== "Unavailable" && error.code !== "Throttled") {
      await host.removeDirectory(directory).catch(() => {});
    }
    throw explained(error, volumeName, instance);
  }
}

/** Detaches from this node. Idempotent. */
export async function detachFromNode(node: DiskNode, volumeName: string, signal: AbortSignal): Promise<void> {
  await detachDisk(node.disks, node.cloud(), volumeName, kubeletOf(node).nodeName, signal);
}

function explained(error: unknown, volumeName: string, { nodeName }: Instance): unknown {
  if (!(error instanceof CloudError)) return error;
  if (error.code === "NotFound") return missingDisk(volumeName, error);
  if (error.code === "Unauthenticated") {
    return new InTreeVolumeError(
      `volume ${volumeName}: the provider refuses user and key of its secret: correct the secret`,
      { cause: error },
    );
  }
  if (error.code !== "InUse") return error;
  return new InTreeVolumeError(
    `volume ${volumeName} is in use by another node and cannot be written to from ${nodeName}: end the pods that use it there`,
    { cause: error },
  );
}
