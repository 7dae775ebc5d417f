/** Attaching EBS volumes from the controller, in-tree: the disk cloud is called directly. */
import type { DiskCloud, Instance } from "../../framework/ports.ts";
import type { VolumeSpec } from "../../framework/spec.ts";
import { diskIdOf, EbsVolumeError, ebsSourceOf } from "./volume-id.ts";

/** Attaches, and gives the device's path on the instance. Idempotent. */
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
  const { devicePath } = await cloud.attachDisk(diskIdOf(volumeID), instance.instanceId, signal);
  return devicePath;
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

function instanceOf(cloud: DiskCloud, nodeName: string, signal: AbortSignal): Promise<Instance | undefined> {
  return cloud.describeInstance(nodeName, signal);
}
