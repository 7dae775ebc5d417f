/** Where a disk may be attached, and where it is: the rules of the providers as pure decisions. */
import { CloudError } from "@longshore/volumes";
import type { CloudInstance, CloudState, DiskRecord } from "./cloud-state.ts";
import { diskOf, findDisk, idOf } from "./find-disk.ts";
import type { AttachOptions, ProviderAttachment } from "./provider-cloud.ts";
import { type Provider, providerOf } from "./providers/index.ts";

/** What an attach comes to. */
export interface AttachDecision {
  /** `resume`: it is attached there, or on its way; `join`: one more reader. */
  readonly kind: "attach" | "resume" | "join";
  readonly disk: DiskRecord;
}

/** What has to happen so that the disk is attached to the instance. @throws CloudError when that is against the rules */
export function decideAttach(
  state: CloudState,
  provider: Provider,
  diskId: string,
  instanceId: string,
  options: AttachOptions = {},
): AttachDecision {
  const disk = diskOf(state, provider, diskId);
  const instance = instanceOf(state, instanceId);
  if (isAttachedTo(disk, instanceId) && disk.state !== "detaching") {
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
  const joins = isJoining(provider, disk, options);
  if (disk.instanceId !== undefined && !joins) {
    throw new CloudError(
      "InUse",
      `disk ${diskId} is ${disk.state === "attached" ? "attached to" : `${disk.state} at`} instance ${disk.instanceId}` +
        `${disk.instanceId === instanceId ? "" : `, so not to ${instanceId}`}: detach it first`,
    );
  }
  if (disk.state !== "available" && !joins) {
    throw new CloudError("InUse", `disk ${diskId} is ${disk.state}: try again once it is available`);
  }
  cachingOf(provider, options);
  checkZone(provider, disk, instance);
  checkLimit(state, provider, instance);
  return { kind: joins ? "join" : "attach", disk };
}

/** How the machine caches the disk; undefined where the provider does not let callers say. @throws CloudError InvalidArgument */
export function cachingOf(
  { name, cachingModes = [] }: Provider,
  { caching = cachingModes[0] }: AttachOptions,
): string | undefined {
  if (caching === undefined) return undefined;
  const mode = cachingModes.find((known) => known.toLowerCase() === caching.toLowerCase());
  if (mode !== undefined) return mode;
  const choice = cachingModes.length === 0 ? "leave it out" : `use one of ${cachingModes.join(", ")}`;
  throw new CloudError("InvalidArgument", `caching "${caching}" is not a mode of ${name}: ${choice}`);
}

/** Whether the instance becomes one more of several that only read. */
function isJoining(provider: Provider, disk: DiskRecord, options: AttachOptions): boolean {
  return (
    provider.sharesReaders === true &&
    disk.state === "attached" &&
    disk.attachedFor?.readOnly === true &&
    options.readOnly === true
  );
}

/** @throws CloudError ZoneMismatch */
function checkZone(provider: Provider, disk: DiskRecord, instance: CloudInstance): void {
  const zones = [disk.zone, ...(disk.replicaZones ?? [])];
  if (provider.places === "anywhere" || zones.includes(instance.zone)) return;
  throw new CloudError(
    "ZoneMismatch",
    `disk ${idOf(disk)} is in zone ${zones.join(" and ")}, instance ${instance.instanceId} in ${instance.zone}: ` +
      "use a node of the disk's zone",
  );
}

/** @throws CloudError LimitExceeded */
function checkLimit(state: CloudState, provider: Provider, instance: CloudInstance): void {
  const attached = attachedTo(state, instance.instanceId, provider).length;
  const limit = attachLimitOf(provider, instance);
  if (attached < limit) return;
  throw new CloudError(
    "LimitExceeded",
    `instance ${instance.instanceId} has ${attached} disks attached, its limit is ${limit}: detach one or use another node`,
  );
}

/** Most disks of the provider on the instance; `Number.MAX_SAFE_INTEGER` where there is no limit. */
export function attachLimitOf(provider: Provider, instance: CloudInstance): number {
  const own = instance.attachLimits?.[provider.name];
  if (own !== undefined) return own;
  const { attachLimit = Number.MAX_SAFE_INTEGER } = provider;
  return attachLimit === "instance" ? instance.attachLimit : attachLimit;
}

/** The lowest number that no disk of the provider has on the instance. */
export function freeSlot(state: CloudState, provider: Provider, instanceId: string): number {
  const taken = new Set(
    attachedTo(state, instanceId, provider).map((disk) =>
      disk.instanceId === instanceId ? disk.slot : disk.readers?.[instanceId]?.slot,
    ),
  );
  let slot = 0;
  while (taken.has(slot)) slot++;
  return slot;
}

function wordsOf({ use = "anything", readOnly = false }: AttachOptions): string {
  return `for ${use}${readOnly ? ", read-only" : ""}`;
}

/** The disk, if it has to be detached from the instance. */
export function decideDetach(
  state: CloudState,
  provider: Provider,
  diskId: string,
  instanceId: string,
): { readonly kind: "detach" | "leave"; readonly disk: DiskRecord } | undefined {
  const disk = findDisk(state, provider, diskId);
  if (disk === undefined || !isAttachedTo(disk, instanceId)) return undefined;
  return { kind: Object.keys(disk.readers ?? {}).length > 0 ? "leave" : "detach", disk };
}

function isAttachedTo(disk: DiskRecord, instanceId: string): boolean {
  return disk.instanceId === instanceId || Object.hasOwn(disk.readers ?? {}, instanceId);
}

/** @throws CloudError NotFound */
export function instanceOf(state: CloudState, instanceId: string): CloudInstance {
  const instance = Object.hasOwn(state.instances, instanceId) ? state.instances[instanceId] : undefined;
  if (instance === undefined) throw new CloudError("NotFound", `there is no instance ${instanceId}`);
  return instance;
}

/** The disks on the instance; with a provider: those that count against its limit. */
export function attachedTo(
  state: CloudState,
  instanceId: string,
  provider?: Provider,
): readonly DiskRecord[] {
  return Object.values(state.disks).filter(
    (disk) => isAttachedTo(disk, instanceId) && (provider === undefined || providerOf(disk) === provider),
  );
}

/** The disk's attachments as callers see them; the device path is empty until the attachment is complete. */
export function attachmentsOf(disk: DiskRecord): readonly ProviderAttachment[] {
  const { instanceId, devicePath = "", attachedFor, slot } = disk;
  if (instanceId === undefined) return [];
  const { showsLun = false } = providerOf(disk);
  const lun = showsLun && slot !== undefined ? { lun: slot } : {};
  const readers = Object.entries(disk.readers ?? {}).map(([reader, { devicePath: path }]) => {
    return { instanceId: reader, devicePath: path, ...attachedFor };
  });
  return [{ instanceId, devicePath, ...lun, ...attachedFor }, ...readers];
}

/** The disk without its attachment. */
export function detached(disk: DiskRecord): DiskRecord {
  const { instanceId: _instance, devicePath: _device, attachedFor: _use, slot: _slot, ...rest } = disk;
  return { ...rest, state: "available" };
}

/** The disk with one more reader. */
export function withReader(
  disk: DiskRecord,
  instanceId: string,
  reader: NonNullable<DiskRecord["readers"]>[string],
): DiskRecord {
  return { ...disk, readers: { ...disk.readers, [instanceId]: reader } };
}

/** The disk of several readers without this one; another one is the first then. */
export function withoutReader(disk: DiskRecord, instanceId: string): DiskRecord {
  const { readers = {}, slot: _slot, ...rest } = disk;
  const others = Object.entries(readers).filter(([id]) => id !== instanceId);
  if (disk.instanceId !== instanceId) return { ...disk, readers: Object.fromEntries(others) };
  const [first, ...left] = others;
  if (first === undefined) return detached(disk);
  return { ...rest, instanceId: first[0], ...first[1], readers: Object.fromEntries(left) };
}
