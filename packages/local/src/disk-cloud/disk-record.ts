/**
 * What the disk cloud remembers of its disks, and the rules of the provider as pure decisions.
 * EBS semantics: a disk lives in one zone, has one attachment, and is created once per name.
 *
 *     creating ──> available ──> attaching ──> attached ──> detaching ──> available ──> deleting ──> gone
 *
 * The states that end in -ing are intents: stored before anything is done, and taken up again after a crash.
 */
import { CloudError, type Disk, type Instance } from "@longshore/volumes";

/** Where a disk stands in its life. */
export type DiskState = "creating" | "available" | "attaching" | "attached" | "detaching" | "deleting";

/** One disk as it is stored. */
export interface DiskRecord {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  /** In bytes, decimal. */
  readonly sizeBytes: string;
  readonly type: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly state: DiskState;
  /** Set from `attaching` to `detaching`. */
  readonly instanceId?: string;
  /** Set from `attached` on: the device on the instance. */
  readonly devicePath?: string;
}

/** Everything that the cloud stores besides its call log. */
export interface CloudState {
  readonly version: 1;
  readonly disks: Readonly<Record<string, DiskRecord>>;
  readonly instances: Readonly<Record<string, Instance>>;
}

/** A cloud that has nothing yet. */
export const emptyState: CloudState = { version: 1, disks: {}, instances: {} };

/** The largest disk of the provider: 64 TiB (io2 Block Express). */
const diskBytesMax = 64n * 2n ** 40n;

/** A request to create a disk. */
export interface CreateDiskRequest {
  readonly name: string;
  readonly zone: string;
  readonly sizeBytes: bigint;
  readonly type: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** The disk that already has this name. @throws CloudError AlreadyExists when it differs from what is asked for */
export function existingDisk(state: CloudState, request: CreateDiskRequest): DiskRecord | undefined {
  const disk = Object.values(state.disks).find((d) => d.name === request.name && d.state !== "deleting");
  if (disk === undefined) return undefined;
  const wanted = { zone: request.zone, sizeBytes: request.sizeBytes.toString(), type: request.type };
  for (const field of ["zone", "sizeBytes", "type"] as const) {
    if (disk[field] !== wanted[field]) {
      throw new CloudError(
        "AlreadyExists",
        `disk ${disk.id} has the name ${request.name} but ${field} ${disk[field]}, not ${wanted[field]}: ` +
          "choose another name or delete it",
      );
    }
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

/** What has to happen so that the disk is attached to the instance. @throws CloudError when that is against the rules */
export function decideAttach(
  state: CloudState,
  diskId: string,
  instanceId: string,
):
  | { readonly kind: "attach"; readonly disk: DiskRecord }
  | { readonly kind: "resume"; readonly disk: DiskRecord } {
  const disk = diskOf(state, diskId);
  const instance = instanceOf(state, instanceId);
  if (disk.instanceId === instanceId && disk.state !== "detaching") return { kind: "resume", disk };
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
export function toDisk(record: DiskRecord): Disk {
  const { id, name, zone, type, tags, instanceId, devicePath } = record;
  const attachments = instanceId === undefined ? [] : [{ instanceId, devicePath: devicePath ?? "" }];
  return { id, name, zone, type, tags, sizeBytes: BigInt(record.sizeBytes), attachments };
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

/** The state with these instances in it; the very same state when it knows them so already. */
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
  const { instanceId: _instance, devicePath: _device, ...rest } = disk;
  return { ...rest, state: "available" };
}
