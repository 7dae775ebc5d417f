/**
 * Volumes that the node itself attaches, before it mounts them, and detaches after it has unmounted them; the
 * attach/detach controller attaches none (Ceph RBD, Portworx).
 */
import type { Pod } from "@longshore/kube";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import { type CloudCredentials, CloudError } from "../../framework/ports.ts";
import { kubeletPaths } from "../../framework/volume-host.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { resolvedLink } from "../device-mounts.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { detachDisk, instanceNamed, missingDisk } from "./attach-disk.ts";
import { type AttachedByNode, type DiskNames, type DiskSource, diskSourceOf } from "./disk-description.ts";
import { type DiskNode, kubeletOf } from "./disk-node-half.ts";

/** A node that attaches. */
export interface AttachingNode extends DiskNode {
  readonly attached: AttachedByNode;
}

/**
 * Attaches to this node; returns the device. Idempotent. The directory is there before the volume is attached: an agent
 * that starts finds by it every volume that its predecessor may have attached, also after a loss of power.
 */
export async function attachOnNode(
  node: AttachingNode,
  directory: string,
  spec: VolumeSpec,
  pod: Pod | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { host } = kubeletOf(node);
  const source = diskSourceOf(node.disks, spec);
  const credentials = await node.attached.credentialsOf(spec, pod, node.host, signal);
  await host.makeDirectory(directory);
  try {
    await makeDurable(node, source.volumeName);
  } catch (error) {
    await host.removeDirectory(directory).catch(() => {});
    throw error;
  }
  try {
    return await attachToNode(node, node.disks.names, source, credentials, signal);
  } catch (error) {
    // Refused: nothing is attached now that was not before; and before, the directory was a mount or not empty.
    if (error instanceof InTreeVolumeError) await host.removeDirectory(directory).catch(() => {});
    throw error;
  }
}

/** A file that is durable makes all durable that was made before it on its file system, as journals keep the order of changes. */
async function makeDurable(node: AttachingNode, volumeName: string): Promise<void> {
  const { host, rootDir } = kubeletOf(node);
  const pluginDir = kubeletPaths.pluginDir(rootDir, node.disks.pluginName);
  await host.writeFileAtomic(`${pluginDir}/attached-last`, volumeName);
}

/** As {@link attachOnNode}, without a directory. @throws InTreeVolumeError when the provider has refused */
export async function attachToNode(
  node: DiskNode,
  names: DiskNames,
  { volumeName, readOnly }: DiskSource,
  credentials: CloudCredentials | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { host, nodeName } = kubeletOf(node);
  const { instanceId } = await instanceNamed(node.cloud(), nodeName, signal);
  const options = { readOnly, ...(credentials !== undefined && { credentials }) };
  try {
    const { devicePath } = await node
      .cloud()
      .attachDisk(names.diskIdOf(volumeName), instanceId, signal, options);
    return await resolvedLink(host, devicePath);
  } catch (error) {
    throw refusal(error, volumeName, nodeName) ?? error;
  }
}

/** Detaches from this node. Idempotent. */
export async function detachFromNode(node: DiskNode, volumeName: string, signal: AbortSignal): Promise<void> {
  await detachDisk(node.disks, node.cloud(), volumeName, kubeletOf(node).nodeName, signal);
}

/**
 * Detaches what could not be mounted: no unmount will follow, and another node could not have it.
 *
 * @throws UncertainProgressError when that has failed, too: an unmount must follow then
 */
export async function detachingOnFailure(
  node: DiskNode,
  spec: VolumeSpec,
  signal: AbortSignal,
  mount: () => Promise<void>,
): Promise<void> {
  try {
    await mount();
  } catch (error) {
    const { volumeName } = diskSourceOf(node.disks, spec);
    try {
      await detachFromNode(node, volumeName, signal);
    } catch {
      throw new UncertainProgressError(
        `volume ${volumeName} was not mounted and may be attached to this node`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

/** What a provider's refusal means to a user; undefined where the outcome is open or nothing can be corrected. */
export function refusal(error: unknown, volumeName: string, nodeName: string): InTreeVolumeError | undefined {
  if (!(error instanceof CloudError)) return undefined;
  if (error.code === "NotFound") return missingDisk(volumeName, error);
  if (error.code === "Unauthenticated") {
    return new InTreeVolumeError(
      `volume ${volumeName}: the provider refuses user and key of its secret: correct the secret`,
      { cause: error },
    );
  }
  if (error.code !== "InUse") return undefined;
  return new InTreeVolumeError(
    `volume ${volumeName} is in use by another node and cannot be attached to ${nodeName}: end the pods that use it there`,
    { cause: error },
  );
}
