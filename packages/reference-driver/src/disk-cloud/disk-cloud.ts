/**
 * The disk cloud: the stand-in for a provider's disk API. A disk is a backing file; attaching it makes
 * its loop device.
 *
 * Invariants
 *  - The intent of each change is stored before the machine is touched, so a crash at any `await` is
 *    taken up again at the next start, or by the caller's next try (`disk-work.ts`, `snapshot-work.ts`).
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
import { type CloudCaller, CloudError, type Instance } from "@longshore/volumes";
import { type CallCounters, type CallLog, type CloudCall, type CloudOp, openCallLog } from "./call-log.ts";
import { CloudFaults, type CloudKnobs } from "./cloud-faults.ts";
import type { DiskRecord } from "./cloud-state.ts";
import * as record from "./disk-record.ts";
import { DiskWork, isFull } from "./disk-work.ts";
import type { DiskCondition, ProviderCloud, ProviderDisk } from "./provider-cloud.ts";
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
  await host.makeDirectory(`${stateDir}/disks`);
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
  readonly #snapshots: SnapshotWork;
  readonly #work: DiskWork;
  #stopped = false;

  constructor(env: DiskCloudEnv, options: DiskCloudOptions, file: StateFile, log: CallLog) {
    this.#env = env;
    this.#options = options;
    this.#file = file;
    this.#log = log;
    this.#faults = new CloudFaults(env);
    const { stateDir, zoneCapacityBytes } = options;
    const shared = { ...env, file, lock: new KeyedLock(), stateDir };
    this.#work = new DiskWork({
      ...shared,
      zoneCapacityBytes,
      zones: () => this.#zones(),
      snapshotFile: (snapshotId) => this.#snapshots.fileOf(snapshotId),
    });
    this.#snapshots = new SnapshotWork({
      ...shared,
      backingFile: (diskId) => this.#work.backingFile(diskId),
    });
  }

  /** After a start: registers the instances and brings every disk to where it was meant to be. */
  async resume(): Promise<void> {
    await this.#file.update((state) => record.withInstances(state, this.#options.instances ?? []));
    await this.#work.resume();
    for (const error of await this.#snapshots.resume()) {
      this.#env.logger.warn("interrupted snapshot rolled back", { error });
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
      createDisk: (request, signal) => call("createDisk", {}, signal, () => this.#work.create(request)),
      deleteDisk: (diskId, signal) => call("deleteDisk", { diskId }, signal, () => this.#work.delete(diskId)),
      attachDisk: (diskId, instanceId, signal, how) =>
        call("attachDisk", { diskId, instanceId }, signal, () => this.#work.attach(diskId, instanceId, how)),
      detachDisk: (diskId, instanceId, signal) =>
        call("detachDisk", { diskId, instanceId }, signal, () => this.#work.detach(diskId, instanceId)),
      resizeDisk: (diskId, sizeBytes, signal) =>
        call("resizeDisk", { diskId }, signal, () => this.#work.resize(diskId, sizeBytes)),
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
        call("modifyDisk", { diskId }, signal, () => this.#work.modify(diskId, change)),
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
      snapshotBlocks: (request, signal) =>
        call("snapshotBlocks", {}, signal, () => this.#snapshots.blocks(request)),
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
      await this.#work.detach(disk.id, instanceId);
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
      // The work continues after the caller has gone: half a change would be of no use.
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

  async #diskConditions(diskIds: readonly string[]): Promise<Record<string, DiskCondition>> {
    const conditions: Record<string, DiskCondition> = {};
    for (const diskId of diskIds) {
      const disk = this.#file.state.disks[diskId];
      if (disk === undefined || disk.state === "deleting") continue;
      const file = await this.#env.host.stat(this.#work.backingFile(diskId));
      const isGone = file === undefined && disk.state !== "creating";
      const wrong = disk.condition ?? (isGone ? `the backing file of disk ${diskId} is gone` : undefined);
      conditions[diskId] = { abnormal: wrong !== undefined, message: wrong ?? "the disk is healthy" };
    }
    return conditions;
  }

  async #zoneCapacity(
    zone: string,
  ): Promise<{ readonly availableBytes: bigint; readonly largestBytes: bigint }> {
    const allowed = this.#zones().includes(zone)
      ? record.roomIn(this.#file.state, zone, this.#options.zoneCapacityBytes)
      : 0n;
    const room = await this.#onMachine(allowed);
    return { availableBytes: room, largestBytes: least(room, record.diskBytesMax) };
  }

  /** Disks that are made take room on this machine, where they are more than directories. */
  async #onMachine(bytes: bigint): Promise<bigint> {
    const { host } = this.#env;
    if (host.form !== "kernel") return bytes;
    const free = BigInt((await host.usage(this.#options.stateDir)).availableBytes);
    return least(free, bytes);
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

  #toCloudError(op: CloudOp, error: unknown): CloudError {
    if (error instanceof CloudError) return error;
    if (isFull(error)) {
      return new CloudError(
        "NoSpace",
        `${op} failed because the disk that holds ${this.#options.stateDir} has no room for it: free space there or use another directory`,
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

function least(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
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
