/** Attaching EBS volumes from the controller, in-tree: the disk cloud is called directly. */
import { DanglingAttachError } from "../../framework/controller-errors.ts";
import { CloudError, type DiskCloud, type Instance } from "../../framework/ports.ts";
import type { ListedAttachment } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { diskIdOf, EbsVolumeError, ebsSourceOf, ebsVolumeID } from "./ebs-volume-id.ts";

/** Attaches, and returns the device's path on the instance. Idempotent. */
export async function attachEbs(
  cloud: DiskCloud,
  spec: VolumeSpec,
  nodeName: string,
  signal: AbortSignal,
): Promise<string> {
  const { volumeID } = ebsSourceOf(spec);
  const instance = await instanceOf(cloud, nodeName, signal);
  if (instance === undefined) {
    throw new EbsVolumeError(`error finding instance ${nodeName}: the cloud has none of that name`);
  }
  const diskId = diskIdOf(volumeID);
  try {
    return (await cloud.attachDisk(diskId, instance.instanceId, signal)).devicePath;
  } catch (error) {
    if (!(error instanceof CloudError) || error.code !== "InUse") throw error;
    throw (await danglingAttach(cloud, diskId, instance, error, signal)) ?? error;
  }
}

/** The error that says which node has the disk, so that the controller can free it. */
async function danglingAttach(
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
    other.devicePath,
    { cause },
  );
}

/** Detaches. An instance that is gone holds nothing. Idempotent. */
export async function detachEbs(
  cloud: DiskCloud,
  volumeName: string,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  const instance = await instanceOf(cloud, nodeName, signal);
  if (instance === undefined) return;
  await cloud.detachDisk(diskIdOf(volumeName), instance.instanceId, signal);
}

/** For each spec whether the cloud has it attached to the node. */
export async function ebsVolumesAreAttached(
  cloud: DiskCloud,
  specs: readonly VolumeSpec[],
  nodeName: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<VolumeSpec, boolean>> {
  const instance = await instanceOf(cloud, nodeName, signal);
  const answers = new Map<VolumeSpec, boolean>();
  for (const spec of specs) {
    const disk = await cloud.describeDisk(diskIdOf(ebsSourceOf(spec).volumeID), signal);
    const attached = disk?.attachments.some((a) => a.instanceId === instance?.instanceId) ?? false;
    answers.set(spec, attached);
  }
  return answers;
}

/** Every disk that is attached to an instance that the cloud knows. */
export async function listEbsAttachments(
  cloud: DiskCloud,
  signal: AbortSignal,
): Promise<readonly ListedAttachment[]> {
  const instances = await cloud.listInstances(signal);
  const nodeOf = new Map(instances.map(({ instanceId, nodeName }) => [instanceId, nodeName]));
  return (await cloud.listDisks(signal)).flatMap(({ id, zone, attachments }) =>
    attachments.flatMap(({ instanceId, devicePath }) => {
      const nodeName = nodeOf.get(instanceId);
      return nodeName === undefined ? [] : [{ volumeName: ebsVolumeID(zone, id), nodeName, devicePath }];
    }),
  );
}

function instanceOf(cloud: DiskCloud, nodeName: string, signal: AbortSignal): Promise<Instance | undefined> {
  return cloud.describeInstance(nodeName, signal);
}
