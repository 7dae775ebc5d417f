/**
 * The life of disks on the machine: a disk is a backing file, `disks/ID`, and attaching it makes its loop device and the link by
 * which its provider names that. A share is a directory, `shares/ID`.
 *
 * Invariants
 *  - The intent of each change is stored before the machine is touched: what a crash interrupted is taken up again.
 *  - A disk that could not be made leaves nothing behind.
 *  - A disk has room for all of it: what was written to it and synced is not lost when the machine's disk is full.
 */
import { type Host, HostError, type KeyedLock, type Logger, type Random } from "@longshore/runtime";
import { CloudError, type DiskAttachment } from "@longshore/volumes";
import * as attachment from "./attachment-record.ts";
import type { CloudState, DiskRecord, SnapshotRecord } from "./cloud-state.ts";
import { accountTags, checkCredentials, withAccount } from "./credentials.ts";
import type { DeviceLinks } from "./device-links.ts";
import * as record from "./disk-record.ts";
import { diskOf, findDisk, idOf, keyOf } from "./find-disk.ts";
import type { AttachOptions, CreateDiskRequest, ProviderDisk } from "./provider-cloud.ts";
import { accountOf, type Provider, providerOf } from "./providers/index.ts";
import * as snapshots from "./snapshot-record.ts";
import type { StateFile } from "./state-file.ts";

/** What the work needs. */
export interface DiskWorkOptions {
  readonly host: Host;
  readonly logger: Logger;
  readonly random: Random;
  readonly file: StateFile;
  /** One change at a time for each disk, and for each name that is being created. */
  readonly lock: KeyedLock;
  readonly stateDir: string;
  /** Room for disks in each zone, in bytes. */
  readonly zoneCapacityBytes: bigint | undefined;
  readonly links: DeviceLinks;
  /** Users of images, with their keys. */
  readonly cephUsers: Readonly<Record<string, string>>;
  zones(provider: Provider): readonly string[];
  storagePolicies(provider: Provider): readonly string[];
  /** Between the intent of an attach and its effect. @throws CloudError where that stays away for now */
  holdAttach(disk: DiskRecord, isNew: boolean): void;
  /** Where a snapshot's content is. */
  snapshotFile(snapshotId: string): string;
}

/** The disks of one cloud. */
export class DiskWork {
  readonly #options: DiskWorkOptions;

  constructor(options: DiskWorkOptions) {
    this.#options = options;
  }

  /** After a start: brings every disk to where it was meant to be. */
  async resume(): Promise<void> {
    for (const disk of Object.values(this.#options.file.state.disks)) {
      if (disk.state === "deleting") await this.#finishDelete(disk);
      else if (disk.state === "detaching") await this.#resumeDetach(disk);
      else if (disk.instanceId !== undefined) await this.#resumeAttach(disk);
      else await this.#resumeCreate(disk);
    }
  }

  async create(provider: Provider, request: CreateDiskRequest): Promise<ProviderDisk> {
    const zones = this.#options.zones(provider);
    const storagePolicies = this.#options.storagePolicies(provider);
    record.checkCreateRequest(provider, request, { zones, storagePolicies });
    return this.#options.lock.run(`name ${request.name} of ${provider.name}`, async () => {
      const { file } = this.#options;
      const present = record.existingDisk(file.state, provider, request);
      const disk = present ?? this.#newDisk(provider, request);
      if (disk.state === "creating") {
        // The source cannot change or be deleted meanwhile.
        await this.#holdingSource(disk, async () => {
          if (present === undefined) await this.#planCreate(disk);
          await this.#finishCreateOrTakeBack(disk);
        });
      }
      return this.#asMade(diskOf(file.state, provider, idOf(disk)));
    });
  }

  /** The disk as its creator sees it: with the key of its account, which later answers do not have. */
  #asMade(disk: DiskRecord): ProviderDisk {
    const made = record.toDisk(disk);
    if (providerOf(disk).asksFor !== "account") return made;
    const name = accountOf(idOf(disk));
    const key = this.#options.file.state.accounts?.[name]?.key ?? "";
    return { ...made, tags: { ...made.tags, [accountTags.name]: name, [accountTags.key]: key } };
  }

  #holdingSource(disk: DiskRecord, work: () => Promise<void>): Promise<void> {
    const { source } = disk;
    if (source === undefined) return work();
    const key = source.kind === "disk" ? keyOf(providerOf(disk), source.id) : source.id;
    return this.#options.lock.run(key, work);
  }

  async #planCreate(disk: DiskRecord): Promise<void> {
    await this.#options.file.update((state) => {
      const sizeBytes = BigInt(disk.sizeBytes);
      record.checkRoom(state, disk.zone, sizeBytes, this.#options.zoneCapacityBytes);
      const source = this.#sourceOf(state, disk);
      if (source !== undefined && BigInt(source.sizeBytes) > sizeBytes) {
        throw new CloudError(
          "InvalidArgument",
          `a copy of ${disk.source?.id} cannot have ${sizeBytes} bytes: ask for ${source.sizeBytes} or more`,
        );
      }
      const isShare = providerOf(disk).asksFor === "account";
      const opened = isShare ? withAccount(state, accountOf(idOf(disk)), this.#options.random) : state;
      return record.withDisk(opened, disk);
    });
  }

  /** @throws CloudError NotFound */
  #sourceOf(state: CloudState, disk: DiskRecord): DiskRecord | SnapshotRecord | undefined {
    const { source } = disk;
    if (source === undefined) return undefined;
    const provider = providerOf(disk);
    return source.kind === "disk"
      ? diskOf(state, provider, source.id)
      : snapshots.readySnapshot(state, provider, source.id);
  }

  /** A disk that could not be made leaves nothing behind: the caller may not ask again. */
  async #finishCreateOrTakeBack(disk: DiskRecord): Promise<void> {
    try {
      await this.#finishCreate(disk);
    } catch (error) {
      await this.#put({ ...disk, state: "deleting" });
      await this.#finishDelete(disk);
      throw error;
    }
  }

  async #resumeCreate(disk: DiskRecord): Promise<void> {
    await this.#finishCreate(disk).catch((error: unknown) => {
      this.#options.logger.warn("creating a disk was interrupted: repeat the call", {
        disk: idOf(disk),
        error,
      });
    });
  }

  async modify(
    provider: Provider,
    diskId: string,
    change: { readonly type?: string; readonly settings?: Readonly<Record<string, string>> },
  ): Promise<void> {
    await this.#options.lock.run(keyOf(provider, diskId), () =>
      this.#options.file.update((state) => {
        const disk = diskOf(state, provider, diskId);
        return record.withDisk(state, {
          ...disk,
          type: change.type ?? disk.type,
          createdType: disk.createdType ?? disk.type,
          settings: { ...disk.settings, ...change.settings },
        });
      }),
    );
  }

  async delete(provider: Provider, diskId: string): Promise<void> {
    await this.#options.lock.run(keyOf(provider, diskId), async () => {
      const disk = record.decideDelete(this.#options.file.state, provider, diskId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "deleting" });
      await this.#finishDelete(disk);
    });
  }

  async attach(
    provider: Provider,
    diskId: string,
    instanceId: string,
    how: AttachOptions = {},
  ): Promise<DiskAttachment> {
    const { lock, file, cephUsers } = this.#options;
    return lock.run(keyOf(provider, diskId), async () => {
      const present = diskOf(file.state, provider, diskId);
      checkCredentials(file.state, provider, idOf(present), how.credentials, cephUsers);
      if (provider.attaches === "share") return this.#openShare(present, instanceId);
      let decision: attachment.AttachDecision | undefined;
      // Decided on the state that the intent is written over: two disks may race for the last slot.
      await file.update((state) => {
        decision = attachment.decideAttach(state, provider, diskId, instanceId, how);
        if (decision.kind === "resume") return state;
        decision = { ...decision, disk: planned(state, provider, decision, instanceId, how) };
        return record.withDisk(state, decision.disk);
      });
      if (decision === undefined) throw new CloudError("NotFound", `there is no disk ${diskId}`);
      if (decision.disk.state === "attaching") {
        this.#options.holdAttach(decision.disk, decision.kind === "attach");
      }
      const attached = await this.#finishAttach(decision.disk);
      const own = attachment.attachmentsOf(attached).find((each) => each.instanceId === instanceId);
      if (own === undefined) throw new CloudError("Unavailable", `disk ${diskId} is not attached: try again`);
      const { devicePath, lun, caching } = own;
      return {
        instanceId,
        devicePath,
        ...(lun === undefined ? {} : { lun }),
        ...(caching === undefined ? {} : { caching }),
      };
    });
  }

  /** A share is open to all who have its key: nothing is recorded. */
  async #openShare(disk: DiskRecord, instanceId: string): Promise<DiskAttachment> {
    attachment.instanceOf(this.#options.file.state, instanceId);
    const devicePath = this.backingFile(disk);
    await this.#options.host.makeDirectory(devicePath, 0o777);
    return { instanceId, devicePath };
  }

  async detach(provider: Provider, diskId: string, instanceId: string): Promise<void> {
    await this.#options.lock.run(keyOf(provider, diskId), async () => {
      const decision = attachment.decideDetach(this.#options.file.state, provider, diskId, instanceId);
      if (decision === undefined) return;
      const { kind, disk } = decision;
      if (kind === "leave") return this.#leave(disk, instanceId);
      await this.#put({ ...disk, state: "detaching" });
      await this.#finishDetach(disk);
    });
  }

  /** One of several readers goes; the device stays for the others. */
  async #leave(disk: DiskRecord, instanceId: string): Promise<void> {
    const slot = disk.instanceId === instanceId ? disk.slot : disk.readers?.[instanceId]?.slot;
    await this.#options.links.remove(disk, instanceId, slot);
    await this.#put(attachment.withoutReader(disk, instanceId));
  }

  async resize(provider: Provider, diskId: string, sizeBytes: bigint): Promise<bigint> {
    return this.#options.lock.run(keyOf(provider, diskId), async () => {
      const disk = diskOf(this.#options.file.state, provider, diskId);
      const presentBytes = BigInt(disk.sizeBytes);
      const grown = sizeBytes > presentBytes ? this.#grown(disk, sizeBytes) : disk;
      if (grown !== disk) await this.#put(grown);
      // Also when the size is that already: a crash may have come between the size and the machine.
      await this.#makeBackingFile(grown).catch(async (error: unknown) => {
        // Without room the stored size goes back, or the disk would claim bytes that it does not have.
        if (isFull(error)) await this.#put(disk);
        throw error;
      });
      if (grown.instanceId !== undefined) await this.#options.host.attachLoop(this.backingFile(grown));
      return BigInt(grown.sizeBytes);
    });
  }

  #grown(disk: DiskRecord, sizeBytes: bigint): DiskRecord {
    if (sizeBytes > record.diskBytesMax) {
      throw new CloudError(
        "InvalidArgument",
        `disk ${idOf(disk)} cannot have ${sizeBytes} bytes: ask for at most ${record.diskBytesMax}`,
      );
    }
    const more = sizeBytes - BigInt(disk.sizeBytes);
    record.checkRoom(this.#options.file.state, disk.zone, more, this.#options.zoneCapacityBytes);
    return { ...disk, sizeBytes: sizeBytes.toString(), createdBytes: disk.createdBytes ?? disk.sizeBytes };
  }

  async #finishCreate(disk: DiskRecord): Promise<void> {
    if (disk.state === "creating" && disk.source !== undefined) {
      const target = this.backingFile(disk);
      await this.#options.host.copyDisks([{ source: this.#sourceFile(disk, disk.source), target }]);
    }
    await this.#makeBackingFile(disk);
    if (disk.state === "creating") await this.#put({ ...disk, state: "available" });
  }

  #sourceFile(disk: DiskRecord, { kind, id }: NonNullable<DiskRecord["source"]>): string {
    if (kind === "snapshot") return this.#options.snapshotFile(id);
    return this.backingFile(diskOf(this.#options.file.state, providerOf(disk), id));
  }

  /** What is attached is there again after a start, also while there is no room for what it was to grow to. */
  async #resumeAttach(disk: DiskRecord): Promise<void> {
    await this.#makeBackingFile(disk).catch(async (error: unknown) => {
      const isThere = (await this.#options.host.stat(this.backingFile(disk))) !== undefined;
      if (!isThere || !isFull(error)) throw error;
      this.#options.logger.warn("a disk lacks room: ask for its size again once there is some", {
        disk: idOf(disk),
        error,
      });
    });
    await this.#attachDevice(disk);
  }

  async #finishAttach(disk: DiskRecord): Promise<DiskRecord> {
    await this.#makeBackingFile(disk);
    return this.#attachDevice(disk);
  }

  /** Makes the device and its links, and records them. */
  async #attachDevice(disk: DiskRecord): Promise<DiskRecord> {
    const { host, links } = this.#options;
    const device = await host.attachLoop(this.backingFile(disk));
    if (disk.attachedFor?.readOnly === true) await host.setDeviceReadOnly(device, true);
    const devicePath = await links.make(disk, disk.instanceId, disk.slot, device);
    let attached: DiskRecord = { ...disk, state: "attached", devicePath };
    for (const [reader, { slot }] of Object.entries(disk.readers ?? {})) {
      const path = await links.make(disk, reader, slot, device);
      attached = attachment.withReader(attached, reader, {
        ...(slot === undefined ? {} : { slot }),
        devicePath: path,
      });
    }
    if (JSON.stringify(attached) !== JSON.stringify(disk)) await this.#put(attached);
    return attached;
  }

  /** @throws CloudError InUse, with the attachment as it was, when the disk is mounted */
  async #finishDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#options.host.detachLoop(this.backingFile(disk));
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "EBUSY") throw error;
      // As it was: a disk without a device path had not been attached to the end.
      await this.#put({ ...disk, state: disk.devicePath === undefined ? "attaching" : "attached" });
      throw new CloudError(
        "InUse",
        `disk ${idOf(disk)} is still mounted on instance ${disk.instanceId}: unmount it before it is detached`,
        { cause: error },
      );
    }
    await this.#removeLink(disk);
    await this.#put(attachment.detached(disk));
  }

  async #resumeDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#finishDetach(disk);
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      this.#options.logger.info("a detach was interrupted: repeat the call", {
        disk: idOf(disk),
        error,
      });
    }
  }

  async #finishDelete(disk: DiskRecord): Promise<void> {
    const { host, file } = this.#options;
    if (providerOf(disk).attaches === "share") {
      await host.removeTree(this.backingFile(disk));
    } else {
      await host.detachLoop(this.backingFile(disk));
      await this.#removeLink(disk);
      await host.removeFile(this.backingFile(disk));
    }
    await file.update((state) => record.withoutDisk(state, disk.id));
  }

  async #removeLink(disk: DiskRecord): Promise<void> {
    await this.#options.links.remove(disk, disk.instanceId, disk.slot);
  }

  /** Makes the file if necessary, and reserves room for the whole disk. Never makes a file smaller. */
  async #makeBackingFile(disk: DiskRecord): Promise<void> {
    const { host } = this.#options;
    const path = this.backingFile(disk);
    if (providerOf(disk).attaches === "share") await host.makeDirectory(path, 0o777);
    else await host.allocateFile(path, Number(disk.sizeBytes));
  }

  #put(disk: DiskRecord): Promise<void> {
    return this.#options.file.update((state) => record.withDisk(state, disk));
  }

  /** Where the disk's content is: a file, of a share a directory. */
  backingFile(disk: DiskRecord): string {
    const directory = providerOf(disk).attaches === "share" ? "shares" : "disks";
    return `${this.#options.stateDir}/${directory}/${disk.id}`;
  }

  #newDisk(provider: Provider, request: CreateDiskRequest): DiskRecord {
    const { file, random } = this.#options;
    const hex = random.uuid(`id of disk ${request.name}`).replaceAll("-", "");
    const id = `vol-0${hex.slice(-16)}`;
    const providerId = provider.idOf({ ...request, hex });
    const isTaken = file.state.disks[id] !== undefined || isLive(findDisk(file.state, provider, providerId));
    if (isTaken) return this.#newDisk(provider, request);
    const {
      name,
      zone,
      replicaZones = [],
      type,
      storagePolicy,
      tags,
      source,
      settings,
      fingerprint,
    } = request;
    return {
      id,
      // Records of EBS are as they were before there were other providers.
      ...(provider.name === "aws-ebs" ? {} : { provider: provider.name }),
      ...(providerId === id ? {} : { providerId }),
      name,
      zone,
      ...(replicaZones.length === 0 ? {} : { replicaZones }),
      type,
      ...(storagePolicy === undefined ? {} : { storagePolicy }),
      tags: { ...tags },
      sizeBytes: request.sizeBytes.toString(),
      state: "creating",
      ...(source === undefined ? {} : { source }),
      ...(settings === undefined ? {} : { settings }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    };
  }
}

function isLive(disk: DiskRecord | undefined): boolean {
  return disk !== undefined && disk.state !== "deleting";
}

/** The disk with the intent of the attach. */
function planned(
  state: CloudState,
  provider: Provider,
  { kind, disk }: attachment.AttachDecision,
  instanceId: string,
  options: AttachOptions,
): DiskRecord {
  const { use, readOnly } = options;
  const caching = attachment.cachingOf(provider, options);
  const isNumbered = provider.deviceName !== undefined;
  const slot = isNumbered ? { slot: attachment.freeSlot(state, provider, instanceId) } : {};
  if (kind === "join") return attachment.withReader(disk, instanceId, { ...slot, devicePath: "" });
  const attachedFor = {
    ...(use === undefined ? {} : { use }),
    ...(readOnly === true ? { readOnly } : {}),
    ...(caching === undefined ? {} : { caching }),
  };
  return { ...disk, state: "attaching", instanceId, attachedFor, ...slot };
}

/** Whether the machine's disk has no room for it. */
export function isFull(error: unknown): error is HostError {
  return error instanceof HostError && ["ENOSPC", "EDQUOT", "EFBIG"].includes(error.code);
}
