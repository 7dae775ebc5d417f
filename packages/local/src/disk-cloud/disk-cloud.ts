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
import {
  type CloudCaller,
  CloudError,
  type Disk,
  type DiskAttachment,
  type DiskCloud,
  type Instance,
} from "@longshore/volumes";
import { type CallCounters, type CallLog, type CloudCall, type CloudOp, openCallLog } from "./call-log.ts";
import * as record from "./disk-record.ts";
import { CloudFaults, type CloudKnobs } from "./faults.ts";
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
}

/** The cloud. Stopping it leaves disks and devices as they are. */
export interface DiskCloudService extends Component, DiskCloudAdmin {
  forCaller(caller: CloudCaller): DiskCloud;
  /** The disks as they are at this instant, for those who watch. Not a call, so not logged. */
  disks(): readonly Disk[];
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
  #stopped = false;

  constructor(env: DiskCloudEnv, options: DiskCloudOptions, file: StateFile, log: CallLog) {
    this.#env = env;
    this.#options = options;
    this.#file = file;
    this.#log = log;
    this.#faults = new CloudFaults(env);
  }

  /** After a start: registers the instances and brings every disk to where it was meant to be. */
  async resume(): Promise<void> {
    await this.#file.update((state) => record.withInstances(state, this.#options.instances ?? []));
    for (const disk of Object.values(this.#file.state.disks)) {
      if (disk.state === "deleting") await this.#finishDelete(disk);
      else if (disk.state === "detaching") await this.#resumeDetach(disk);
      else if (disk.instanceId !== undefined) await this.#finishAttach(disk);
      else await this.#finishCreate(disk);
    }
  }

  disks(): readonly Disk[] {
    return this.#disks().map(record.toDisk);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#log.flush();
  }

  forCaller(caller: CloudCaller): DiskCloud {
    const call = <T>(op: CloudOp, on: CallTarget, signal: AbortSignal, work: () => Promise<T> | T) =>
      this.#call(caller, op, on, signal, work);
    return {
      createDisk: (request, signal) => call("createDisk", {}, signal, () => this.#createDisk(request)),
      deleteDisk: (diskId, signal) => call("deleteDisk", { diskId }, signal, () => this.#deleteDisk(diskId)),
      attachDisk: (diskId, instanceId, signal) =>
        call("attachDisk", { diskId, instanceId }, signal, () => this.#attachDisk(diskId, instanceId)),
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

  async #createDisk(request: record.CreateDiskRequest): Promise<Disk> {
    record.checkCreateRequest(request, this.#zones());
    return this.#lock.run(`name ${request.name}`, async () => {
      const present = record.existingDisk(this.#file.state, request);
      const disk = present ?? newDisk(this.#newDiskId(request.name), request);
      if (present === undefined) await this.#file.update((state) => record.withDisk(state, disk));
      if (disk.state === "creating") await this.#finishCreate(disk);
      return record.toDisk(record.diskOf(this.#file.state, disk.id));
    });
  }

  async #deleteDisk(diskId: string): Promise<void> {
    await this.#lock.run(diskId, async () => {
      const disk = record.decideDelete(this.#file.state, diskId);
      if (disk === undefined) return;
      await this.#put({ ...disk, state: "deleting" });
      await this.#finishDelete(disk);
    });
  }

  async #attachDisk(diskId: string, instanceId: string): Promise<DiskAttachment> {
    return this.#lock.run(diskId, async () => {
      let disk: record.DiskRecord | undefined;
      // Decided on the very state that the intent is written over: two disks may race for the last slot.
      await this.#file.update((state) => {
        const decision = record.decideAttach(state, diskId, instanceId);
        disk = decision.disk;
        if (decision.kind === "resume") return state;
        disk = { ...disk, state: "attaching", instanceId };
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
      if (sizeBytes <= BigInt(disk.sizeBytes)) return BigInt(disk.sizeBytes);
      const grown = { ...disk, sizeBytes: sizeBytes.toString() };
      await this.#put(grown);
      await this.#makeBackingFile(grown);
      if (grown.instanceId !== undefined) await this.#env.host.attachLoop(this.#backingFile(diskId));
      return sizeBytes;
    });
  }

  #describeDisk(diskId: string): Disk | undefined {
    const disk = this.#disks().find(({ id }) => id === diskId);
    return disk && record.toDisk(disk);
  }

  #disks(): readonly record.DiskRecord[] {
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

  async #finishCreate(disk: record.DiskRecord): Promise<void> {
    await this.#makeBackingFile(disk);
    if (disk.state === "creating") await this.#put({ ...disk, state: "available" });
  }

  async #finishAttach(disk: record.DiskRecord): Promise<string> {
    await this.#makeBackingFile(disk);
    const devicePath = await this.#env.host.attachLoop(this.#backingFile(disk.id));
    if (disk.state !== "attached" || disk.devicePath !== devicePath) {
      await this.#put({ ...disk, state: "attached", devicePath });
    }
    return devicePath;
  }

  /** @throws CloudError InUse, with the attachment as it was, when the disk is mounted */
  async #finishDetach(disk: record.DiskRecord): Promise<void> {
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

  async #resumeDetach(disk: record.DiskRecord): Promise<void> {
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

  async #finishDelete(disk: record.DiskRecord): Promise<void> {
    await this.#env.host.detachLoop(this.#backingFile(disk.id));
    await this.#env.host.removeFile(this.#backingFile(disk.id));
    await this.#file.update((state) => record.withoutDisk(state, disk.id));
  }

  /** Sparse: takes no room before it is written to. Never makes a file smaller. */
  async #makeBackingFile(disk: record.DiskRecord): Promise<void> {
    const path = this.#backingFile(disk.id);
    const sizeBytes = Number(disk.sizeBytes);
    const present = await this.#env.host.stat(path);
    if (present !== undefined && present.sizeBytes >= sizeBytes) return;
    await this.#env.host.truncateFile(path, sizeBytes);
  }

  #put(disk: record.DiskRecord): Promise<void> {
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
]);

function newDisk(id: string, request: record.CreateDiskRequest): record.DiskRecord {
  const { name, zone, type, tags } = request;
  return {
    id,
    name,
    zone,
    type,
    tags: { ...tags },
    sizeBytes: request.sizeBytes.toString(),
    state: "creating",
  };
}
