/**
 * What the disk cloud remembers of its disks, and the rules of the provider as pure decisions.
 * EBS semantics: a disk is in one zone, has one attachment, and is created once per name.
 *
 *     creating ──> available ──> attaching ──> attached ──> detaching ──> available ──> deleting ──> gone
 *
 * The states that end in -ing are intents: stored before anything is done, and taken up again after a crash.
 */
import { CloudError, type Instance } from "@longshore/volumes";
import type { CloudState, DiskRecord } from "./cloud-state.ts";
import type { AttachOptions, CreateDiskRequest, DiskSource, ProviderDisk } from "./provider-cloud.ts";

/** The largest disk of the provider: 64 TiB (io2 Block Express). */
export const diskBytesMax = 64n * 2n ** 40n;

/** The disk that already has this name. @throws CloudError AlreadyExists when it differs from what is requested */
export function existingDisk(state: CloudState, request: CreateDiskRequest): DiskRecord | undefined {
  const disk = Object.values(state.disks).find((d) => d.name === request.name && d.state !== "deleting");
  if (disk === undefined) return undefined;
  const made = {
    zone: disk.zone,
    sizeBytes: disk.createdBytes ?? disk.sizeBytes,
    type: disk.createdType ?? disk.type,
    source: nameOfSource(disk.source),
  };
  const wanted = {
    zone: request.zone,
    sizeBytes: request.sizeBytes.toString(),
    type: request.type,
    source: nameOfSource(request.source),
  };
  for (const field of ["zone", "sizeBytes", "type", "source"] as const) {
    if (made[field] !== wanted[field]) {
      throw new CloudError(
        "AlreadyExists",
        `disk ${disk.id} has the name ${request.name} but ${field} ${made[field]}, not ${wanted[field]}: ` +
          "choose another name or delete it",
      );
    }
  }
  // Who says nothing of it, as the in-tree code, means the disk whatever its parameters were.
  const { fingerprint } = request;
  if (fingerprint !== undefined && disk.fingerprint !== undefined && fingerprint !== disk.fingerprint) {
    throw new CloudError(
      "AlreadyExists",
      `disk ${disk.id} has the name ${request.name} but was made with other parameters: choose another name or delete it`,
    );
  }
  return disk;
}

/** @throws CloudError InvalidArgument */
export function checkCreateRequest(request: CreateDiskRequest, zones: readonly string[]): void {
  if (request.name === "") throw new CloudError("InvalidArgument", "a disk needs a name");
  if (!zones.includes(request.zone)) {
    throw new CloudError(
      "InvalidArgument",
      `there is no zone "${request.zone}": choose one of ${zones.join(", ")}`,
    );
  }
  if (request.sizeBytes <= 0n || request.sizeBytes > diskBytesMax) {
    throw new CloudError(
      "InvalidArgument",
      `a disk cannot have ${request.sizeBytes} bytes: ask for 1 to ${diskBytesMax}`,
    );
  }
}

/** @throws CloudError LimitExceeded when the zone has no room for so much more */
export function checkRoom(
  state: CloudState,
  zone: string,
  moreBytes: bigint,
  capacityBytes: bigint | undefined,
): void {
  const room = roomIn(state, zone, capacityBytes);
  if (moreBytes > room) {
    throw new CloudError(
      "LimitExceeded",
      `zone ${zone} has room for ${room} bytes more, not for ${moreBytes}: delete disks or use another zone`,
    );
  }
}

/** Room of a zone without a configured limit. */
const unlimitedBytes = 2n ** 50n;

/** Room for disks in the zone, in bytes. */
export function roomIn(state: CloudState, zone: string, capacityBytes: bigint | undefined): bigint {
  if (capacityBytes === undefined) return unlimitedBytes;
  const used = Object.values(state.disks)
    .filter((disk) => disk.zone === zone)
    .reduce((sum, disk) => sum + BigInt(disk.sizeBytes), 0n);
  return used > capacityBytes ? 0n : capacityBytes - used;
}

function nameOfSource(source: DiskSource | undefined): string {
  return source === undefined ? "none" : `${source.kind} ${source.id}`;
}

/** What has to happen so that the disk is attached to the instance. @throws CloudError when that is against the rules */
export function decideAttach(
  state: CloudState,
  diskId: string,
  instanceId: string,
  options: AttachOptions = {},
):
  | { readonly kind: "attach"; readonly disk: DiskRecord }
  | { readonly kind: "resume"; readonly disk: DiskRecord } {
  const disk = diskOf(state, diskId);
  const instance = instanceOf(state, instanceId);
  if (disk.instanceId === instanceId && disk.state !== "detaching") {
    const { use = options.use, readOnly = false } = disk.attachedFor ?? {};
    // One who says nothing of the use, as the in-tree code, is content with any.
    if (options.use !== undefined && (use !== options.use || readOnly !== (options.readOnly ?? false))) {
      throw new CloudError(
        "AlreadyExists",
        `disk ${diskId} is attached to instance ${instanceId} ${wordsOf({ ...disk.attachedFor })}, ` +
          `not ${wordsOf(options)}: detach it first`,
      );
    }
    return { kind: "resume", disk };
  }
  if (disk.instanceId !== undefined) {
    throw new CloudError(
      "InUse",
      `disk ${diskId} is ${disk.state === "attached" ? "attached to" : `${disk.state} at`} instance ${disk.instanceId}` +
        `${disk.instanceId === instanceId ? "" : `, so not to ${instanceId}`}: detach it first`,
    );
  }
  if (disk.state !== "available") {
    throw new CloudError("InUse", `disk ${diskId} is ${disk.state}: try again once it is available`);
  }
  if (disk.zone !== instance.zone) {
    throw new CloudError(
      "ZoneMismatch",
      `disk ${diskId} is in zone ${disk.zone}, instance ${instanceId} in ${instance.zone}: use a node of the disk's zone`,
    );
  }
  const attached = attachedTo(state, instanceId).length;
  if (attached >= instance.attachLimit) {
    throw new CloudError(
      "LimitExceeded",
      `instance ${instanceId} has ${attached} disks attached, its limit is ${instance.attachLimit}: detach one or use another node`,
    );
  }
  return { kind: "attach", disk };
}

function wordsOf({ use = "anything", readOnly = false }: AttachOptions): string {
  return `for ${use}${readOnly ? ", read-only" : ""}`;
}

/** The disk, if it has to be detached from the instance. */
export function decideDetach(state: CloudState, diskId: string, instanceId: string): DiskRecord | undefined {
  const disk = state.disks[diskId];
  return disk?.instanceId === instanceId ? disk : undefined;
}

/** The disk, if it has to be deleted. @throws CloudError InUse while it is attached */
export function decideDelete(state: CloudState, diskId: string): DiskRecord | undefined {
  const disk = state.disks[diskId];
  if (disk?.instanceId !== undefined) {
    throw new CloudError(
      "InUse",
      `disk ${diskId} is attached to instance ${disk.instanceId}: detach it first`,
    );
  }
  return disk;
}

/** @throws CloudError NotFound */
export function diskOf(state: CloudState, diskId: string): DiskRecord {
  const disk = state.disks[diskId];
  if (disk === undefined || disk.state === "deleting") {
    throw new CloudError("NotFound", `there is no disk ${diskId}`);
  }
  return disk;
}

/** @throws CloudError NotFound */
export function instanceOf(state: CloudState, instanceId: string): Instance {
  const instance = state.instances[instanceId];
  if (instance === undefined) throw new CloudError("NotFound", `there is no instance ${instanceId}`);
  return instance;
}

/** The disks that count against the instance's limit. */
export function attachedTo(state: CloudState, instanceId: string): readonly DiskRecord[] {
  return Object.values(state.disks).filter((disk) => disk.instanceId === instanceId);
}

/** The disk as callers see it; the device path is empty until the attachment is complete. */
export function toDisk(record: DiskRecord): ProviderDisk {
  const { id, name, zone, type, tags, instanceId, devicePath = "", attachedFor, source } = record;
  return {
    id,
    name,
    zone,
    type,
    tags,
    sizeBytes: BigInt(record.sizeBytes),
    attachments: instanceId === undefined ? [] : [{ instanceId, devicePath, ...attachedFor }],
    isCreating: record.state === "creating",
    createdBytes: BigInt(record.createdBytes ?? record.sizeBytes),
    settings: record.settings ?? {},
    ...(source === undefined ? {} : { source }),
  };
}

/** The state with this disk in it. */
export function withDisk(state: CloudState, disk: DiskRecord): CloudState {
  return { ...state, disks: { ...state.disks, [disk.id]: disk } };
}

/** The state without this disk. */
export function withoutDisk(state: CloudState, diskId: string): CloudState {
  const { [diskId]: _gone, ...disks } = state.disks;
  return { ...state, disks };
}

/** The state with these instances in it; the same object when it has them already. */
export function withInstances(state: CloudState, instances: readonly Instance[]): CloudState {
  const changed = instances.filter(
    (instance) => !isSameInstance(state.instances[instance.instanceId], instance),
  );
  if (changed.length === 0) return state;
  const byId = Object.fromEntries(changed.map((instance) => [instance.instanceId, instance]));
  return { ...state, instances: { ...state.instances, ...byId } };
}

const instanceFields = ["nodeName", "zone", "region", "attachLimit"] as const;

function isSameInstance(a: Instance | undefined, b: Instance): boolean {
  return instanceFields.every((field) => a?.[field] === b[field]);
}

/** The disk without its attachment. */
export function detached(disk: DiskRecord): DiskRecord {
  const { instanceId: _instance, devicePath: _device, attachedFor: _use, ...rest } = disk;
  return { ...rest, state: "available" };
}
