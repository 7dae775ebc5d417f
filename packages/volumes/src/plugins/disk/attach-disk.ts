/** Attaching disks from the controller, in-tree: the disk cloud is called directly. */
import { DanglingAttachError } from "../../framework/controller-errors.ts";
import { CloudError, type DiskCloud, type Instance } from "../../framework/ports.ts";
import type { ListedAttachment } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { type AttachedByController, type DiskDescription, diskSourceOf } from "./disk-description.ts";

/** A description of disks that the controller attaches. */
export type ControllerDisks = DiskDescription & { readonly attached: AttachedByController };

/** Attaches, and returns what is reported of the device. Idempotent. @throws DanglingAttachError when another node has it */
export async function attachDisk(
  disks: ControllerDisks,
  cloud: DiskCloud,
  spec: VolumeSpec,
  nodeName: string,
  signal: AbortSignal,
): Promise<string> {
  const { volumeName, readOnly, caching } = diskSourceOf(disks, spec);
  const instance = await instanceNamed(cloud, nodeName, signal);
  const diskId = disks.names.diskIdOf(volumeName);
  try {
    const options = {
      ...(disks.attached.readOnly === true && readOnly ? { readOnly } : {}),
      ...(caching === undefined ? {} : { caching }),
    };
    const attachment = await cloud.attachDisk(diskId, instance.instanceId, signal, options);
    return disks.attached.reportedDevice?.(attachment) ?? attachment.devicePath;
  } catch (error) {
    if (!(error instanceof CloudError)) throw error;
    if (error.code === "NotFound") throw missingDisk(volumeName, error);
    if (error.code !== "InUse") throw error;
    throw (await danglingAttach(disks, cloud, diskId, instance, error, signal)) ?? error;
  }
}

/** The instance of the node. @throws InTreeVolumeError when the cloud has none */
export async function instanceNamed(
  cloud: DiskCloud,
  nodeName: string,
  signal: AbortSignal,
): Promise<Instance> {
  const instance = await cloud.describeInstance(nodeName, signal);
  if (instance !== undefined) return instance;
  throw new InTreeVolumeError(`error finding instance ${nodeName}: the cloud has none of that name`);
}

/** The error for a volume whose disk the provider does not have. */
export function missingDisk(volumeName: string, cause: unknown): InTreeVolumeError {
  return new InTreeVolumeError(
    `volume ${volumeName}: the provider has no such disk: correct the volume's source, or delete the volume`,
    { cause },
  );
}

/** The error that says which node has the disk, so that the controller can free it. */
async function danglingAttach(
  { attached }: ControllerDisks,
  cloud: DiskCloud,
  diskId: string,
  wanted: Instance,
  cause: CloudError,
  signal: AbortSignal,
): Promise<DanglingAttachError | undefined> {
  const disk = await cloud.describeDisk(diskId, signal);
  const other = disk?.attachments.find(({ instanceId }) => instanceId !== wanted.instanceId);
  if (other === undefined) return undefined;
  const holder = (await cloud.listInstances(signal)).find(
    ({ instanceId }) => instanceId === other.instanceId,
  );
  if (holder === undefined) return undefined;
  return new DanglingAttachError(
    `disk ${diskId} is attached to node ${holder.nodeName}, not to ${wanted.nodeName}`,
    holder.nodeName,
    attached.reportedDevice?.(other) ?? other.devicePath,
    { cause },
  );
}

/** Detaches. An instance that is gone holds nothing. Idempotent. */
export async function detachDisk(
  { names }: DiskDescription,
  cloud: DiskCloud,
  volumeName: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  const instance = await cloud.describeInstance(nodeName, signal);
  if (instance === undefined) return;
  await cloud.detachDisk(names.diskIdOf(volumeName), instance.instanceId, signal);
}

/** For each spec whether the cloud has it attached to the node. */
export async function disksAreAttached(
  disks: ControllerDisks,
  cloud: DiskCloud,
  specs: readonly VolumeSpec[],
  nodeName: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<VolumeSpec, boolean>> {
  const instance = await cloud.describeInstance(nodeName, signal);
  const answers = new Map<VolumeSpec, boolean>();
  for (const spec of specs) {
    const diskId = disks.names.diskIdOf(diskSourceOf(disks, spec).volumeName);
    const disk = await cloud.describeDisk(diskId, signal);
    const attached = disk?.attachments.some((a) => a.instanceId === instance?.instanceId) ?? false;
    answers.set(spec, attached);
  }
  return answers;
}

/** Every disk that is attached to an instance that the cloud knows. */
export async function listDiskAttachments(
  { names, attached }: ControllerDisks,
  cloud: DiskCloud,
  signal: AbortSignal,
): Promise<readonly ListedAttachment[]> {
  const instances = await cloud.listInstances(signal);
  const nodeOf = new Map(instances.map(({ instanceId, nodeName }) => [instanceId, nodeName]));
  return (await cloud.listDisks(signal)).flatMap((disk) =>
    disk.attachments.flatMap((attachment) => {
      const nodeName = nodeOf.get(attachment.instanceId);
      if (nodeName === undefined) return [];
      const devicePath = attached.reportedDevice?.(attachment) ?? attachment.devicePath;
      return [{ volumeName: names.volumeNameOf(disk), nodeName, devicePath }];
    }),
  );
}
