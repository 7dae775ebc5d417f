/**
 * What the disk cloud remembers of its disks, and how they are made and deleted, as pure decisions.
 * A disk is created once per name, has one attachment, or several that only read it.
 *
 *     creating ──> available ──> attaching ──> attached ──> detaching ──> available ──> deleting ──> gone
 *
 * The states that end in -ing are intents: stored before anything is done, and taken up again after a crash.
 */
import { CloudError } from "@longshore/volumes";
import { attachmentsOf } from "./attachment-record.ts";
import type { CloudInstance, CloudState, DiskRecord } from "./cloud-state.ts";
import { disksOf, findDisk, idOf } from "./find-disk.ts";
import type { CreateDiskRequest, DiskSource, ProviderDisk } from "./provider-cloud.ts";
import type { Provider } from "./providers/index.ts";

/** The largest disk of the provider: 64 TiB (io2 Block Express). */
export const diskBytesMax = 64n * 2n ** 40n;

/** The disk that already has this name. @throws CloudError AlreadyExists when it differs from what is requested */
export function existingDisk(
  state: CloudState,
  provider: Provider,
  request: CreateDiskRequest,
): DiskRecord | undefined {
  const disk = provider.isNumbered
    ? disksOf(state, provider).find(({ name }) => name === request.name)
    : findDisk(state, provider, provider.idOf({ ...request, hex: "" }));
  if (disk === undefined || disk.state === "deleting") return undefined;
  const id = idOf(disk);
  const made = {
    zone: disk.zone,
    replicaZones: [...(disk.replicaZones ?? [])].sort().join(", "),
    sizeBytes: disk.createdBytes ?? disk.sizeBytes,
    type: disk.createdType ?? disk.type,
    storagePolicy: disk.storagePolicy ?? "none",
    source: nameOfSource(disk.source),
  };
  const wanted = {
    zone: request.zone,
    replicaZones: [...(request.replicaZones ?? [])].sort().join(", "),
    sizeBytes: request.sizeBytes.toString(),
    type: request.type,
    storagePolicy: request.storagePolicy ?? "none",
    source: nameOfSource(request.source),
  };
  for (const field of ["zone", "replicaZones", "sizeBytes", "type", "storagePolicy", "source"] as const) {
    if (made[field] !== wanted[field]) {
      throw new CloudError(
        "AlreadyExists",
        `disk ${id} has the name ${request.name} but ${field} ${made[field]}, not ${wanted[field]}: ` +
          "choose another name or delete it",
      );
    }
  }
  // Who says nothing of it, as the in-tree code, means the disk whatever its parameters were.
  const { fingerprint } = request;
  if (fingerprint !== undefined && disk.fingerprint !== undefined && fingerprint !== disk.fingerprint) {
    throw new CloudError(
      "AlreadyExists",
      `disk ${id} has the name ${request.name} but was made with other parameters: choose another name or delete it`,
    );
  }
  return disk;
}

/** @throws CloudError InvalidArgument */
export function checkCreateRequest(
  provider: Provider,
  request: CreateDiskRequest,
  {
    zones,
    storagePolicies,
  }: { readonly zones: readonly string[]; readonly storagePolicies: readonly string[] },
): void {
  if (request.name === "") throw new CloudError("InvalidArgument", "a disk needs a name");
  checkPlace(provider, request, zones);
  checkStoragePolicy(provider, request, storagePolicies);
  if (provider.attaches === "share" && request.source !== undefined) {
    throw new CloudError("InvalidArgument", `${provider.name} copies no shares: leave source out`);
  }
  if (request.sizeBytes <= 0n || request.sizeBytes > diskBytesMax) {
    throw new CloudError(
      "InvalidArgument",
      `a disk cannot have ${request.sizeBytes} bytes: ask for 1 to ${diskBytesMax}`,
    );
  }
}

/** @throws CloudError InvalidArgument naming the policy */
function checkStoragePolicy(
  provider: Provider,
  { storagePolicy }: CreateDiskRequest,
  known: readonly string[],
): void {
  if (storagePolicy === undefined || known.includes(storagePolicy)) return;
  throw new CloudError(
    "InvalidArgument",
    provider.storagePolicies === undefined
      ? `${provider.name} has no storage policies: leave storagePolicy "${storagePolicy}" out`
      : `there is no storage policy "${storagePolicy}": use one of ${known.join(", ")}`,
  );
}

/** @throws CloudError InvalidArgument naming the zone */
function checkPlace(
  provider: Provider,
  { zone, replicaZones = [] }: CreateDiskRequest,
  zones: readonly string[],
): void {
  if (provider.places !== "zones" && replicaZones.length > 0) {
    throw new CloudError("InvalidArgument", `${provider.name} has no regional disks: leave replicaZones out`);
  }
  const unknown = [zone, ...replicaZones].find((each) => !zones.includes(each));
  if (unknown !== undefined) {
    throw new CloudError(
      "InvalidArgument",
      provider.places === "anywhere"
        ? `${provider.name} has no zones: leave zone "${unknown}" empty`
        : `there is no zone "${unknown}": choose one of ${zones.join(", ")}`,
    );
  }
  if (new Set([zone, ...replicaZones]).size <= replicaZones.length) {
    throw new CloudError("InvalidArgument", "replicaZones has a zone twice: name different ones");
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

/** The disk, if it has to be deleted. @throws CloudError InUse while it is attached */
export function decideDelete(state: CloudState, provider: Provider, diskId: string): DiskRecord | undefined {
  const disk = findDisk(state, provider, diskId);
  if (disk?.instanceId !== undefined) {
    throw new CloudError(
      "InUse",
      `disk ${diskId} is attached to instance ${disk.instanceId}: detach it first`,
    );
  }
  return disk;
}

/** The disk as callers see it. */
export function toDisk(record: DiskRecord): ProviderDisk {
  const { name, zone, replicaZones, type, storagePolicy, tags, source } = record;
  return {
    id: idOf(record),
    name,
    zone,
    ...(replicaZones === undefined ? {} : { replicaZones }),
    type,
    ...(storagePolicy === undefined ? {} : { storagePolicy }),
    tags,
    sizeBytes: BigInt(record.sizeBytes),
    attachments: attachmentsOf(record),
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
export function withInstances(state: CloudState, instances: readonly CloudInstance[]): CloudState {
  const changed = instances.filter(
    (instance) => !isSameInstance(state.instances[instance.instanceId], instance),
  );
  if (changed.length === 0) return state;
  const byId = Object.fromEntries(changed.map((instance) => [instance.instanceId, instance]));
  return { ...state, instances: { ...state.instances, ...byId } };
}

const instanceFields = ["nodeName", "zone", "region", "attachLimit"] as const;

function isSameInstance(a: CloudInstance | undefined, b: CloudInstance): boolean {
  const isSameLimits = JSON.stringify(a?.attachLimits) === JSON.stringify(b.attachLimits);
  return isSameLimits && instanceFields.every((field) => a?.[field] === b[field]);
}
