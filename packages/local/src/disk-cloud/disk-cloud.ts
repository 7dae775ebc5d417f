/**
 * The disk cloud: the stand-in for a provider's disk API. A disk is a sparse backing file; attaching
 * it makes its loop device.
 *
 * Invariants
 *  - The intent of each change is stored before the machine is touched, so a crash at any `await` is
 *    taken up again at the next start, or by the caller's next try.
 *  - A disk has at most one attachment, and a disk that is mounted is not detached.
 *  - Every call is in the log before it takes effect.
 */
import {
  abortable,
  type Component,
  type Host,
  HostError,
  KeyedLock,
  type RuntimeEnv,
} from "@longshore/runtime";
import { type CloudCaller, CloudError, type DiskAttachment, type Instance } from "@longshore/volumes";
import { type CallCounters, type CallLog, type CloudCall, type CloudOp, openCallLog } from "./call-log.ts";
import type { CloudState, DiskRecord } from "./cloud-state.ts";
import * as record from "./disk-record.ts";
import { CloudFaults, type CloudKnobs } from "./faults.ts";
import type {
  AttachOptions,
  CreateDiskRequest,
  DiskCondition,
  ProviderCloud,
  ProviderDisk,
} from "./provider-cloud.ts";
import * as snapshots from "./snapshot-record.ts";
import { SnapshotWork } from "./snapshot-work.ts";
import { openStateFile, type StateFile } from "./state-file.ts";

/** What the cloud runs on. */
export interface DiskCloudEnv extends RuntimeEnv {
  /** The machine on which the backing files lie and the devices appear. */
  readonly host: Host;
}

/** Options of {@link createDiskCloud}. */
export interface DiskCloudOptions {
  /** Directory of the backing files (`disks/ID`), the state and the call log. Made when missing. */
  readonly stateDir: string;
  /** Instances that are registered at the start; those stored before stay registered too. */
  readonly instances?: readonly Instance[];
  /** Zones that disks can be made in; default us-east-1a, b and c and the zones of the instances. */
  readonly zones?: readonly string[];
  /** Room for disks in each zone, in bytes; default as much as anyone may want. */
  readonly zoneCapacityBytes?: bigint;
  /** Calls that the log keeps; default 50,000. */
  readonly callsMax?: number;
}

/** What the operator of the cloud can do, besides what callers can. */
export interface DiskCloudAdmin {
  /** Registers a machine, or changes it. */
  registerInstance(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Takes a machine away, with its attachments. @throws CloudError InUse while one is mounted */
  deregisterInstance(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Logged calls with a number above `sinceSeq`, in order. Calls of the operator are not logged. */
  calls(sinceSeq: number, signal: AbortSignal): Promise<readonly CloudCall[]>;
  counters(signal: AbortSignal): Promise<CallCounters>;
  /** Makes an operation (or, with `*`, each that has no knobs of its own) misbehave. */
  setKnobs(op: CloudOp | "*", knobs: CloudKnobs, signal: AbortSignal): Promise<void>;
  /** Says what is wrong with a disk; undefined: nothing any more. @throws CloudError NotFound */
  setCondition(diskId: string, message: string | undefined, signal: AbortSignal): Promise<void>;
}

/** The cloud. Stopping it leaves disks and devices as they are. */
export interface DiskCloudService extends Component, DiskCloudAdmin {
  forCaller(caller: CloudCaller): ProviderCloud;
  /** The disks as they are at this instant, for those who watch. Not a call, so not logged. */
  disks(): readonly ProviderDisk[];
}

const defaultZones = ["us-east-1a", "us-east-1b", "us-east-1c"] as const;

/** Opens the cloud and takes up what a crash interrupted. */
export async function createDiskCloud(
  env: DiskCloudEnv,
  options: DiskCloudOptions,
): Promise<DiskCloudService> {
  const { host } = env;
  const { stateDir } = options;
  await host.makeDirectory(`${stateDir}/disks`, 0o700);
  const file = await openStateFile(host, `${stateDir}/state.json`);
  const callsMax = options.callsMax === undefined ? {} : { callsMax: options.callsMax };
  const log = await openCallLog(env, { path: `${stateDir}/calls.jsonl`, ...callsMax });
  const cloud = new LocalDiskCloud(env, options, file, log);
  await cloud.resume();
  return cloud;
}

class LocalDiskCloud implements DiskCloudService {
  readonly #env: DiskCloudEnv;
  readonly #options: DiskCloudOptions;
  readonly #file: StateFile;
  readonly #log: CallLog;
  readonly #faults: CloudFaults;
  /** One change at a time for each disk, and for each name that is being created. */
  readonly #lock = new KeyedLock();
  readonly #snapshots: SnapshotWork;
  #stopped = false;

  constructor(env: DiskCloudEnv, options: DiskCloudOptions, file: StateFile, log: CallLog) {
    this.#env = env;
    this.#options = options;
    this.#file = file;
    this.#log = log;
    this.#faults = new CloudFaults(env);
    this.#snapshots = new SnapshotWork({
      ...env,
      file,
      lock: this.#lock,
      stateDir: options.stateDir,
      backingFile: (diskId) => this.#backingFile(diskId),
    });
  }

  /** After a start: registers the instances and brings every disk to where it was meant to be. */
  async resume(): Promise<void> {
    await this.#file.update((state) => record.withInstances(state, this.#options.instances ?? []));
    for (const disk of Object.values(this.#file.state.disks)) {
      if (disk.state === "deleting") await this.#finishDelete(disk);
      else if (disk.state === "detaching") await this.#resumeDetach(disk);
      else if (disk.instanceId !== undefined) await this.#finishAttach(disk);
      else await this.#resumeCreate(disk);
    }
    for (const error of await this.#snapshots.resume()) {
      this.#env.logger.warn("a snapshot that was interrupted could not be made and is taken back", { error });
    }
  }

  disks(): readonly ProviderDisk[] {
    return this.#disks().map(record.toDisk);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#log.flush();
  }

  forCaller(caller: CloudCaller): ProviderCloud {
    const call = <T>(op: CloudOp, on: CallTarget, signal: AbortSignal, work: () => Promise<T> | T) =>
      this.#call(caller, op, on, signal, work);
    return {
      createDisk: (request, signal) => call("createDisk", {}, signal, () => this.#createDisk(request)),
      deleteDisk: (diskId, signal) => call("deleteDisk", { diskId }, signal, () => this.#deleteDisk(diskId)),
      attachDisk: (diskId, instanceId, signal, how) =>
        call("attachDisk", { diskId, instanceId }, signal, () => this.#attachDisk(diskId, instanceId, how)),
      detachDisk: (diskId, instanceId, signal) =>
        call("detachDisk", { diskId, instanceId }, signal, () => this.#detachDisk(diskId, instanceId)),
      resizeDisk: (diskId, sizeBytes, signal) =>
        call("resizeDisk", { diskId }, signal, () => this.#resizeDisk(diskId, sizeBytes)),
      describeDisk: (diskId, signal) =>
        call("describeDisk", { diskId }, signal, () => this.#describeDisk(diskId)),
      listDisks: (signal) => call("listDisks", {}, signal, () => this.#disks().map(record.toDisk)),
      describeInstance: (nodeName, signal) => {
        const instance = this.#instances().find((i) => i.nodeName === nodeName);
        const on = instance === undefined ? {} : { instanceId: instance.instanceId };
        return call("describeInstance", on, signal, () => instance);
      },
      listInstances: (signal) => call("listInstances", {}, signal, () => this.#instances()),
      modifyDisk: (diskId, change, signal) =>
        call("modifyDisk", { diskId }, signal, () => this.#modifyDisk(diskId, change)),
      diskConditions: (diskIds, signal) =>
        call("diskConditions", {}, signal, () => this.#diskConditions(diskIds)),
      listZones: (signal) => call("listZones", {}, signal, () => this.#zones()),
      zoneCapacity: (zone, signal) => call("zoneCapacity", {}, signal, () => this.#zoneCapacity(zone)),
      createSnapshot: ({ name, diskId }, signal) =>
        call("createSnapshot", { diskId }, signal, () => this.#snapshots.create(name, diskId)),
      deleteSnapshot: (snapshotId, signal) =>
        call("deleteSnapshot", {}, signal, () => this.#snapshots.delete(snapshotId)),
      listSnapshots: (signal) =>
        call("listSnapshots", {}, signal, () =>
          snapshots
            .snapshotsOf(this.#file.state)
            .filter(({ state }) => state === "ready")
            .map(snapshots.toSnapshot),
        ),
      createSnapshotGroup: ({ name, diskIds }, signal) =>
        call("createSnapshotGroup", {}, signal, () => this.#snapshots.createGroup(name, diskIds)),
      deleteSnapshotGroup: (groupId, signal) =>
        call("deleteSnapshotGroup", {}, signal, () => this.#snapshots.deleteGroup(groupId)),
      describeSnapshotGroup: (groupId, signal) =>
        call("describeSnapshotGroup", {}, signal, () => {
          const group = this.#file.state.groups?.[groupId];
          return group && snapshots.toGroup(this.#file.state, group);
        }),
    };
  }

  async registerInstance(instance: Instance, _signal: AbortSignal): Promise<void> {
    await this.#file.update((state) => record.withInstances(state, [instance]));
  }

  async deregisterInstance(instanceId: string, _signal: AbortSignal): Promise<void> {
    for (const disk of record.attachedTo(this.#file.state, instanceId)) {
      await this.#detachDisk(disk.id, instanceId);
    }
    await this.#file.update((state) => {
      const { [instanceId]: _gone, ...instances } = state.instances;
      return { ...state, instances };
    });
  }

  async calls(sinceSeq: number, _signal: AbortSignal): Promise<readonly CloudCall[]> {
    return this.#log.since(sinceSeq);
  }

  async counters(_signal: AbortSignal): Promise<CallCounters> {
    return this.#log.counters();
  }

  async setKnobs(op: CloudOp | "*", knobs: CloudKnobs, _signal: AbortSignal): Promise<void> {
    this.#faults.set(op, knobs);
  }

  async setCondition(diskId: string, message: string | undefined, _signal: AbortSignal): Promise<void> {
    await this.#file.update((state) => {
      const { condition: _before, ...disk } = record.diskOf(state, diskId);
      return record.withDisk(state, message === undefined ? disk : { ...disk, condition: message });
    });
  }

  /** Log, knobs and conversion of the host's errors around one call. */
  async #call<T>(
    caller: CloudCaller,
    op: CloudOp,
    target: CallTarget,
    signal: AbortSignal,
    work: () => Promise<T> | T,
  ): Promise<T> {
    signal.throwIfAborted();
    if (this.#stopped) throw new CloudError("Unavailable", "the disk cloud is stopping: try again");
    const { path, component } = caller;
    const { diskId, instanceId } = target;
    let seq: number | undefined;
    try {
      seq = await this.#log.begin({ path, component, op, diskId, instanceId }, changing.has(op));
      // The work goes on when the caller has gone: half a change would help nobody.
      const result = await abortable(
        this.#faults.around(op, signal, async () => work()),
        signal,
      );
      this.#log.end(seq, "ok");
      return result;
    } catch (error) {
      const failure = signal.aborted ? error : this.#toCloudError(op, error);
      if (seq !== undefined) this.#log.end(seq, failure instanceof CloudError ? failure.code : "Unavailable");
      throw failure;
    }
  }

  async #createDisk(request: CreateDiskRequest): Promise<ProviderDisk> {
    record.checkCreateRequest(request, this.#zones());
    return this.#lock.run(`name ${request.name}`, async () => {
      const present = record.existingDisk(this.#file.state, request);
      const disk = present ?? newDisk(this.#newDiskId(request.name), request);
      if (disk.state === "creating") {
        // Nobody changes or deletes the source meanwhile.
        await this.#holdingSource(disk, async () => {
          if (present === undefined) await this.#planCreate(disk);
          await this.#finishCreateOrTakeBack(disk);
        });
      }
      return record.toDisk(record.diskOf(this.#file.state, disk.id));
    });
  }

  #holdingSource(disk: DiskRecord, work: () => Promise<void>): Promise<void> {
    return disk.source === undefined ? work() : this.#lock.run(disk.source.id, work);
  }

  async #planCreate(disk: DiskRecord): Promise<void> {
    await this.#file.update((state) => {
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

  /** A disk that could not be made leaves nothing behind: whoever asked may not ask again. */
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
      this.#env.logger.warn("a disk that was being made has to be asked for again", { disk: disk.id, error });
    });
  }

  async #modifyDisk(
    diskId: string,
    change: { readonly type?: string; readonly settings?: Readonly<Record<string, string>> },
  ): Promise<void> {
    await this.#lock.run(diskId, () =>
      this.#file.update((state) => {
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

  async #diskConditions(diskIds: readonly string[]): Promise<Record<string, DiskCondition>> {
    const conditions: Record<string, DiskCondition> = {};
    for (const diskId of diskIds) {
      const disk = this.#file.state.disks[diskId];
      if (disk === undefined || disk.state === "deleting") continue;
      const file = await this.#env.host.stat(this.#backingFile(diskId));
      const isGone = file === undefined && disk.state !== "creating";
      const wrong = disk.condition ?? (isGone ? `the backing file of disk ${diskId} is gone` : undefined);
      conditions[diskId] = { abnormal: wrong !== undefined, message: wrong ?? "the disk is healthy" };
    }
    return conditions;
  }

  #zoneCapacity(zone: string): { readonly availableBytes: bigint; readonly largestBytes: bigint } {
    const room = this.#zones().includes(zone)
      ? record.roomIn(this.#file.state, zone, this.#options.zoneCapacityBytes)
      : 0n;
    return { availableBytes: room, largestBytes: room < record.diskBytesMax ? room : record.diskBytesMax };
  }

  async #deleteDisk(diskId: string): Promise<void> {
    await this.#lock.run(diskId, async () => {
      const disk = record.decideDelete(this.#file.state, diskId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "deleting" });
      await this.#finishDelete(disk);
    });
  }

  async #attachDisk(diskId: string, instanceId: string, how: AttachOptions = {}): Promise<DiskAttachment> {
    return this.#lock.run(diskId, async () => {
      let disk: DiskRecord | undefined;
      // Decided on the very state that the intent is written over: two disks may race for the last slot.
      await this.#file.update((state) => {
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

  async #detachDisk(diskId: string, instanceId: string): Promise<void> {
    await this.#lock.run(diskId, async () => {
      const disk = record.decideDetach(this.#file.state, diskId, instanceId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "detaching" });
      await this.#finishDetach(disk);
    });
  }

  async #resizeDisk(diskId: string, sizeBytes: bigint): Promise<bigint> {
    return this.#lock.run(diskId, async () => {
      const disk = record.diskOf(this.#file.state, diskId);
      const presentBytes = BigInt(disk.sizeBytes);
      const grown = sizeBytes > presentBytes ? this.#grown(disk, sizeBytes) : disk;
      if (grown !== disk) await this.#put(grown);
      // Also when the size is that already: a crash may have come between the size and the machine.
      await this.#makeBackingFile(grown);
      if (grown.instanceId !== undefined) await this.#env.host.attachLoop(this.#backingFile(diskId));
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
    record.checkRoom(this.#file.state, disk.zone, more, this.#options.zoneCapacityBytes);
    return { ...disk, sizeBytes: sizeBytes.toString(), createdBytes: disk.createdBytes ?? disk.sizeBytes };
  }

  #describeDisk(diskId: string): ProviderDisk | undefined {
    const disk = this.#disks().find(({ id }) => id === diskId);
    return disk && record.toDisk(disk);
  }

  #disks(): readonly DiskRecord[] {
    return Object.values(this.#file.state.disks).filter(({ state }) => state !== "deleting");
  }

  #instances(): readonly Instance[] {
    return Object.values(this.#file.state.instances);
  }

  #zones(): readonly string[] {
    return (
      this.#options.zones ?? [...new Set([...defaultZones, ...this.#instances().map(({ zone }) => zone)])]
    );
  }

  async #finishCreate(disk: DiskRecord): Promise<void> {
    if (disk.state === "creating" && disk.source !== undefined) {
      const { kind, id } = disk.source;
      const source = kind === "disk" ? this.#backingFile(id) : this.#snapshots.fileOf(id);
      await this.#env.host.copyDisks([{ source, target: this.#backingFile(disk.id) }]);
    }
    await this.#makeBackingFile(disk);
    if (disk.state === "creating") await this.#put({ ...disk, state: "available" });
  }

  async #finishAttach(disk: DiskRecord): Promise<string> {
    await this.#makeBackingFile(disk);
    const devicePath = await this.#env.host.attachLoop(this.#backingFile(disk.id));
    if (disk.attachedFor?.readOnly === true) await this.#env.host.setDeviceReadOnly(devicePath, true);
    if (disk.state !== "attached" || disk.devicePath !== devicePath) {
      await this.#put({ ...disk, state: "attached", devicePath });
    }
    return devicePath;
  }

  /** @throws CloudError InUse, with the attachment as it was, when the disk is mounted */
  async #finishDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#env.host.detachLoop(this.#backingFile(disk.id));
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "EBUSY") throw error;
      await this.#put({ ...disk, state: disk.devicePath === undefined ? "attaching" : "attached" });
      throw new CloudError(
        "InUse",
        `disk ${disk.id} is still mounted on instance ${disk.instanceId}: unmount it before it is detached`,
        { cause: error },
      );
    }
    await this.#put(record.detached(disk));
  }

  async #resumeDetach(disk: DiskRecord): Promise<void> {
    try {
      await this.#finishDetach(disk);
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      this.#env.logger.info("a detach that was interrupted has to be asked for again", {
        disk: disk.id,
        error,
      });
    }
  }

  async #finishDelete(disk: DiskRecord): Promise<void> {
    await this.#env.host.detachLoop(this.#backingFile(disk.id));
    await this.#env.host.removeFile(this.#backingFile(disk.id));
    await this.#file.update((state) => record.withoutDisk(state, disk.id));
  }

  /** Sparse: takes no room before it is written to. Never makes a file smaller. */
  async #makeBackingFile(disk: DiskRecord): Promise<void> {
    const path = this.#backingFile(disk.id);
    const sizeBytes = Number(disk.sizeBytes);
    const present = await this.#env.host.stat(path);
    if (present !== undefined && present.sizeBytes >= sizeBytes) return;
    await this.#env.host.truncateFile(path, sizeBytes);
  }

  #put(disk: DiskRecord): Promise<void> {
    return this.#file.update((state) => record.withDisk(state, disk));
  }

  #backingFile(diskId: string): string {
    return `${this.#options.stateDir}/disks/${diskId}`;
  }

  #newDiskId(name: string): string {
    const hex = this.#env.random.uuid(`id of disk ${name}`).replaceAll("-", "");
    const id = `vol-0${hex.slice(-16)}`;
    return this.#file.state.disks[id] === undefined ? id : this.#newDiskId(name);
  }

  #toCloudError(op: CloudOp, error: unknown): CloudError {
    if (error instanceof CloudError) return error;
    if (error instanceof HostError && (error.code === "ENOSPC" || error.code === "EDQUOT")) {
      return new CloudError(
        "NoSpace",
        `${op} failed because ${this.#options.stateDir} is full: free space there or use another directory`,
        { cause: error },
      );
    }
    if (error instanceof HostError && error.operation === "copyDisks" && error.code === "EAGAIN") {
      return new CloudError("Throttled", "the disk is written to without a pause: try again", {
        cause: error,
      });
    }
    this.#env.logger.error("a call to the disk cloud failed", { op, error });
    return new CloudError(
      "Unavailable",
      `${op} failed on the disk cloud's machine: see its log and try again`,
      {
        cause: error,
      },
    );
  }
}

interface CallTarget {
  readonly diskId?: string;
  readonly instanceId?: string;
}

const changing: ReadonlySet<CloudOp> = new Set<CloudOp>([
  "createDisk",
  "deleteDisk",
  "attachDisk",
  "detachDisk",
  "resizeDisk",
  "modifyDisk",
  "createSnapshot",
  "deleteSnapshot",
  "createSnapshotGroup",
  "deleteSnapshotGroup",
]);

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
