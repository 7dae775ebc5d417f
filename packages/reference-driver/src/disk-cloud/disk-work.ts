/**
 * The life of disks on the machine: a disk is a backing file, `disks/ID`, and attaching it makes its loop device.
 *
 * Invariants
 *  - The intent of each change is stored before the machine is touched: what a crash interrupted is taken up again.
 *  - A disk that could not be made leaves nothing behind.
 *  - A disk has room for all of it: what was written to it and synced is not lost when the machine's disk is full.
 */
import { type Host, HostError, type KeyedLock, type Logger, type Random } from "@longshore/runtime";
import { CloudError, type DiskAttachment } from "@longshore/volumes";
import type { CloudState, DiskRecord } from "./cloud-state.ts";
import * as record from "./disk-record.ts";
import type { AttachOptions, CreateDiskRequest, ProviderDisk } from "./provider-cloud.ts";
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
  zones(): readonly string[];
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

  async create(request: CreateDiskRequest): Promise<ProviderDisk> {
    record.checkCreateRequest(request, this.#options.zones());
    return this.#options.lock.run(`name ${request.name}`, async () => {
      const present = record.existingDisk(this.#options.file.state, request);
      const disk = present ?? newDisk(this.#newDiskId(request.name), request);
      if (disk.state === "creating") {
        // The source cannot change or be deleted meanwhile.
        await this.#holdingSource(disk, async () => {
          if (present === undefined) await this.#planCreate(disk);
          await this.#finishCreateOrTakeBack(disk);
        });
      }
      return record.toDisk(record.diskOf(this.#options.file.state, disk.id));
    });
  }

  #holdingSource(disk: DiskRecord, work: () => Promise<void>): Promise<void> {
    return disk.source === undefined ? work() : this.#options.lock.run(disk.source.id, work);
  }

  async #planCreate(disk: DiskRecord): Promise<void> {
    await this.#options.file.update((state) => {
      const sizeBytes = BigInt(disk.sizeBytes);
      record.checkRoom(state, disk.zone, sizeBytes, this.#options.zoneCapacityBytes);
      const source = this.#sourceOf(state, disk);
      if (source !== undefined && BigInt(source.sizeBytes) > sizeBytes) {
        throw new CloudError(
          "InvalidArgument",
          `a copy of ${source.id} cannot have ${sizeBytes} bytes: ask for ${source.sizeBytes} or more`,
        );
      }
      return record.withDisk(state, disk);
    });
  }

  /** @throws CloudError NotFound */
  #sourceOf(state: CloudState, { source }: DiskRecord) {
    if (source === undefined) return undefined;
    return source.kind === "disk"
      ? record.diskOf(state, source.id)
      : snapshots.readySnapshot(state, source.id);
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
        disk: disk.id,
        error,
      });
    });
  }

  async modify(
    diskId: string,
    change: { readonly type?: string; readonly settings?: Readonly<Record<string, string>> },
  ): Promise<void> {
    await this.#options.lock.run(diskId, () =>
      this.#options.file.update((state) => {
        const disk = record.diskOf(state, diskId);
        return record.withDisk(state, {
          ...disk,
          type: change.type ?? disk.type,
          createdType: disk.createdType ?? disk.type,
          settings: { ...disk.settings, ...change.settings },
        });
      }),
    );
  }

  async delete(diskId: string): Promise<void> {
    await this.#options.lock.run(diskId, async () => {
      const disk = record.decideDelete(this.#options.file.state, diskId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "deleting" });
      await this.#finishDelete(disk);
    });
  }

  async attach(diskId: string, instanceId: string, how: AttachOptions = {}): Promise<DiskAttachment> {
    return this.#options.lock.run(diskId, async () => {
      let disk: DiskRecord | undefined;
      // Decided on the state that the intent is written over: two disks may race for the last slot.
      await this.#options.file.update((state) => {
        const decision = record.decideAttach(state, diskId, instanceId, how);
        disk = decision.disk;
        if (decision.kind === "resume") return state;
        const { use, readOnly } = how;
        const attachedFor = {
          ...(use === undefined ? {} : { use }),
          ...(readOnly === true ? { readOnly } : {}),
        };
        disk = { ...disk, state: "attaching", instanceId, attachedFor };
        return record.withDisk(state, disk);
      });
      if (disk === undefined) throw new CloudError("NotFound", `there is no disk ${diskId}`);
      return { instanceId, devicePath: await this.#finishAttach(disk) };
    });
  }

  async detach(diskId: string, instanceId: string): Promise<void> {
    await this.#options.lock.run(diskId, async () => {
      const disk = record.decideDetach(this.#options.file.state, diskId, instanceId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "detaching" });
      await this.#finishDetach(disk);
    });
  }

  async resize(diskId: string, sizeBytes: bigint): Promise<bigint> {
    return this.#options.lock.run(diskId, async () => {
      const disk = record.diskOf(this.#options.file.state, diskId);
      const presentBytes = BigInt(disk.sizeBytes);
      const grown = sizeBytes > presentBytes ? this.#grown(disk, sizeBytes) : disk;
      if (grown !== disk) await this.#put(grown);
      // Also when the size is that already: a crash may have come between the size and the machine.
      await this.#makeBackingFile(grown).catch(async (error: unknown) => {
        // Without room the stored size goes back, or the disk would claim bytes that it does not have.
        if (isFull(error)) await this.#put(disk);
        throw error;
      });
      if (grown.instanceId !== undefined) await this.#options.host.attachLoop(this.backingFile(diskId));
      return BigInt(grown.sizeBytes);
    });
  }

  #grown(disk: DiskRecord, sizeBytes: bigint): DiskRecord {
    if (sizeBytes > record.diskBytesMax) {
      throw new CloudError(
        "InvalidArgument",
        `disk ${disk.id} cannot have ${sizeBytes} bytes: ask for at most ${record.diskBytesMax}`,
      );
    }
    const more = sizeBytes - BigInt(disk.sizeBytes);
    record.checkRoom(this.#options.file.state, disk.zone, more, this.#options.zoneCapacityBytes);
    return { ...disk, sizeBytes: sizeBytes.toString(), createdBytes: disk.createdBytes ?? disk.sizeBytes };
  }

  async #finishCreate(disk: DiskRecord): Promise<void> {
    if (disk.state === "creating" && disk.source !== undefined) {
      const { kind, id } = disk.source;
      const source = kind === "disk" ? this.backingFile(id) : this.#options.snapshotFile(id);
      await this.#options.host.copyDisks([{ source, target: this.backingFile(disk.id) }]);
    }
    await this.#makeBackingFile(disk);
    if (disk.state === "creating") await this.#put({ ...disk, state: "available" });
  }

  /** What is attached is there again after a start, also while there is no room for what it was to grow to. */
  async #resumeAttach(disk: DiskRecord): Promise<void> {
    await this.#makeBackingFile(disk).catch(async (error: unknown) => {
      const isThere = (await this.#options.host.stat(this.backingFile(disk.id))) !== undefined;
      if (!isThere || !isFull(error)) throw error;
      this.#options.logger.warn("a disk lacks room: ask for its size again once there is some", {
        disk: disk.id,
        error,
      });
    });
    await this.#attachDevice(disk);
  }

  async #finishAttach(disk: DiskRecord): Promise<string> {
    await this.#makeBackingFile(disk);
    return this.#attachDevice(disk);
  }

  async #attachDevice(disk: DiskRecord): Promise<string> {
    const device = await this.#options.host.attachLoop(this.backingFile(disk.id));
    if (disk.attachedFor?.readOnly === true) await this.#options.host.setDeviceReadOnly(device, true);
    const devicePath = await this.#nameDevice(disk.id, device);
    if (disk.state !== "attached" || disk.devicePath !== devicePath) {
      await this.#put({ ...disk, state: "attached", devicePath });
    }
    return devicePath;
  }

  /**
   * A loop device has another number after the machine was started again, and its number is another disk's then: callers
   * are given a name that is the disk's alone, as those of /dev/disk/by-id are. Other hosts' devices have such names.
   */
  async #nameDevice(diskId: string, device: string): Promise<string> {
    const { host, stateDir } = this.#options;
    if (host.form !== "kernel") return device;
    const name = this.#deviceName(diskId);
    if ((await host.readLink(name)) === device) return name;
    await host.makeDirectory(`${stateDir}/devices`);
    await host.removeFile(name);
    await host.symlink(device, name);
    return name;
  }

  #deviceName(diskId: string): string {
    return `${this.#options.stateDir}/devices/${diskId}`;
  }

  /** @throws CloudError InUse, with the attachment as it was, when the disk is mounted */
  async #finishDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#options.host.detachLoop(this.backingFile(disk.id));
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "EBUSY") throw error;
      // As it was: a disk without a device path had not been attached to the end.
      await this.#put({ ...disk, state: disk.devicePath === undefined ? "attaching" : "attached" });
      throw new CloudError(
        "InUse",
        `disk ${disk.id} is still mounted on instance ${disk.instanceId}: unmount it before it is detached`,
        { cause: error },
      );
    }
    await this.#options.host.removeFile(this.#deviceName(disk.id));
    await this.#put(record.detached(disk));
  }

  async #resumeDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#finishDetach(disk);
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      this.#options.logger.info("a detach was interrupted: repeat the call", {
        disk: disk.id,
        error,
      });
    }
  }

  async #finishDelete(disk: DiskRecord): Promise<void> {
    await this.#options.host.detachLoop(this.backingFile(disk.id));
    await this.#options.host.removeFile(this.#deviceName(disk.id));
    await this.#options.host.removeFile(this.backingFile(disk.id));
    await this.#options.file.update((state) => record.withoutDisk(state, disk.id));
  }

  /** Makes the file if necessary, and reserves room for the whole disk. Never makes a file smaller. */
  async #makeBackingFile(disk: DiskRecord): Promise<void> {
    await this.#options.host.allocateFile(this.backingFile(disk.id), Number(disk.sizeBytes));
  }

  #put(disk: DiskRecord): Promise<void> {
    return this.#options.file.update((state) => record.withDisk(state, disk));
  }

  backingFile(diskId: string): string {
    return `${this.#options.stateDir}/disks/${diskId}`;
  }

  #newDiskId(name: string): string {
    const hex = this.#options.random.uuid(`id of disk ${name}`).replaceAll("-", "");
    const id = `vol-0${hex.slice(-16)}`;
    return this.#options.file.state.disks[id] === undefined ? id : this.#newDiskId(name);
  }
}

/** Whether the machine's disk has no room for it. */
export function isFull(error: unknown): error is HostError {
  return error instanceof HostError && ["ENOSPC", "EDQUOT", "EFBIG"].includes(error.code);
}

function newDisk(id: string, request: CreateDiskRequest): DiskRecord {
  const { name, zone, type, tags, source, settings, fingerprint } = request;
  return {
    id,
    name,
    zone,
    type,
    tags: { ...tags },
    sizeBytes: request.sizeBytes.toString(),
    state: "creating",
    ...(source === undefined ? {} : { source }),
    ...(settings === undefined ? {} : { settings }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
  };
}
