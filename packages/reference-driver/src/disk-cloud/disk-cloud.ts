/**
 * The disk cloud: the stand-in for a provider's disk API. A disk is a backing file; attaching it makes
 * its loop device.
 *
 * Invariants
 *  - The intent of each change is stored before the machine is touched, so a crash at any `await` is
 *    taken up again at the next start, or by the caller's next try (`disk-work.ts`, `snapshot-work.ts`).
 *  - A disk has one attachment at most, or several that only read it; a disk that is mounted is not detached.
 *  - A caller sees the disks of its provider alone (`providers/`).
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
import { type CloudCaller, CloudError, type CloudProvider, type Instance } from "@longshore/volumes";
import { attachedTo, attachLimitOf } from "./attachment-record.ts";
import { type CallCounters, type CallLog, type CloudCall, type CloudOp, openCallLog } from "./call-log.ts";
import { CloudFaults, type CloudKnobs, type NeededZones } from "./cloud-faults.ts";
import type { CloudInstance, CloudState, DiskRecord } from "./cloud-state.ts";
import { accountCredentials, defaultCephUsers } from "./credentials.ts";
import { DeviceLinks } from "./device-links.ts";
import * as record from "./disk-record.ts";
import { DiskWork, isFull } from "./disk-work.ts";
import { diskOf, disksOf, findDisk, idOf } from "./find-disk.ts";
import type { DiskCondition, ProviderCloud, ProviderDisk } from "./provider-cloud.ts";
import { type Provider, providerOf } from "./providers/index.ts";
import * as snapshots from "./snapshot-record.ts";
import { SnapshotWork } from "./snapshot-work.ts";
import { openStateFile } from "./state-file.ts";
import { StateHistory } from "./state-history.ts";

/** What the cloud runs on. */
export interface DiskCloudEnv extends RuntimeEnv {
  /** The machine on which the backing files lie and the devices appear. */
  readonly host: Host;
}

/** Options of {@link createDiskCloud}. */
export interface DiskCloudOptions {
  /** Directory of the backing files (`disks/ID`), shares, the state and the call log. Made when missing. */
  readonly stateDir: string;
  /**
   * Directory of the links to devices, `INSTANCE-ID/NAME`, by the names that providers give them; default `devices` in
   * `stateDir`. Where machines have file systems of their own, one that all of them see.
   */
  readonly deviceDir?: string;
  /** Users of the Ceph cluster with their keys; default {@link defaultCephUsers}. */
  readonly cephUsers?: Readonly<Record<string, string>>;
  /** Instances that are registered at the start; those stored before stay registered too. */
  readonly instances?: readonly CloudInstance[];
  /** Zones that disks can be made in; default us-east-1a, b and c and the zones of the instances. */
  readonly zones?: readonly string[];
  /** Policies under which disks of vSphere can be made; default a catalogue of three. */
  readonly storagePolicies?: readonly string[];
  /** Room for disks in each zone, in bytes; default as much as anyone may want. */
  readonly zoneCapacityBytes?: bigint;
  /** Calls that the log keeps; default 50,000. */
  readonly callsMax?: number;
}

/** What the operator of the cloud can do, besides what callers can. */
export interface DiskCloudAdmin {
  /** Registers a machine, or changes it. */
  registerInstance(instance: CloudInstance, signal: AbortSignal): Promise<void>;
  /** Takes a machine away, with its attachments. @throws CloudError InUse while one is mounted */
  deregisterInstance(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Logged calls with a number above `sinceSeq`, in order. Calls of the operator are not logged. */
  calls(sinceSeq: number, signal: AbortSignal): Promise<readonly CloudCall[]>;
  counters(signal: AbortSignal): Promise<CallCounters>;
  /** Makes an operation (or, with `*`, each that has no knobs of its own) misbehave, for one provider or for all. */
  setKnobs(
    op: CloudOp | "*",
    knobs: CloudKnobs,
    signal: AbortSignal,
    provider?: CloudProvider,
  ): Promise<void>;
  /** Says what is wrong with a disk (of EBS unless another provider is named); undefined: nothing any more. @throws CloudError NotFound */
  setCondition(
    diskId: string,
    message: string | undefined,
    signal: AbortSignal,
    provider?: CloudProvider,
  ): Promise<void>;
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
  const cloud = new LocalDiskCloud(env, options, new StateHistory(file, env.clock), log);
  await cloud.resume();
  return cloud;
}

class LocalDiskCloud implements DiskCloudService {
  readonly #env: DiskCloudEnv;
  readonly #options: DiskCloudOptions;
  readonly #file: StateHistory;
  /** The disks as they were seen last: states never change. */
  #seen: { readonly of: CloudState["disks"]; readonly disks: readonly ProviderDisk[] } | undefined;
  readonly #log: CallLog;
  readonly #faults: CloudFaults;
  readonly #snapshots: SnapshotWork;
  readonly #work: DiskWork;
  #stopped = false;

  constructor(env: DiskCloudEnv, options: DiskCloudOptions, file: StateHistory, log: CallLog) {
    this.#env = env;
    this.#options = options;
    this.#file = file;
    this.#log = log;
    this.#faults = new CloudFaults(env);
    const { stateDir, zoneCapacityBytes, deviceDir = `${stateDir}/devices` } = options;
    const shared = { ...env, file, lock: new KeyedLock(), stateDir };
    this.#work = new DiskWork({
      ...shared,
      zoneCapacityBytes,
      links: new DeviceLinks(env.host, deviceDir),
      cephUsers: options.cephUsers ?? defaultCephUsers,
      zones: (provider) => this.#zones(provider),
      storagePolicies: (provider) => this.#storagePolicies(provider),
      holdAttach: (disk, isNew) => this.#faults.holdAttach(providerOf(disk).name, disk.id, isNew),
      snapshotFile: (snapshotId) => this.#snapshots.fileOf(snapshotId),
    });
    this.#snapshots = new SnapshotWork({
      ...shared,
      backingFile: (disk) => this.#work.backingFile(disk),
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
    const { disks } = this.#file.state;
    if (this.#seen?.of !== disks) {
      const live = Object.values(disks).filter(({ state }) => state !== "deleting");
      this.#seen = { of: disks, disks: live.map(record.toDisk) };
    }
    return this.#seen.disks;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#log.flush();
  }

  forCaller(caller: CloudCaller): ProviderCloud {
    const provider = providerOf(caller);
    const work = this.#work;
    const copies = this.#snapshots;
    const call = <T>(op: CloudOp, on: CallTarget, signal: AbortSignal, effect: () => Promise<T> | T) =>
      this.#call(caller, op, on, signal, effect);
    /** What the caller is shown: the present, or what was some time ago. */
    const shown = (op: CloudOp) =>
      this.#file.ago(this.#faults.of({ op, provider: provider.name }).staleMs ?? 0);
    const describeInstance = (nodeName: string) => {
      const instance = Object.values(this.#file.state.instances).find((i) => i.nodeName === nodeName);
      return instance && asInstance(provider, instance);
    };
    return {
      createDisk: (request, signal) => {
        const zones = [request.zone, ...(request.replicaZones ?? [])];
        return call("createDisk", { zones }, signal, () => work.create(provider, request));
      },
      deleteDisk: (diskId, signal) =>
        call("deleteDisk", { diskId }, signal, () => work.delete(provider, diskId)),
      attachDisk: (diskId, instanceId, signal, how) =>
        call("attachDisk", { diskId, instanceId }, signal, () =>
          work.attach(provider, diskId, instanceId, how),
        ),
      detachDisk: (diskId, instanceId, signal) =>
        call("detachDisk", { diskId, instanceId }, signal, () => work.detach(provider, diskId, instanceId)),
      resizeDisk: (diskId, sizeBytes, signal) =>
        call("resizeDisk", { diskId }, signal, () => work.resize(provider, diskId, sizeBytes)),
      describeDisk: (diskId, signal) =>
        call("describeDisk", { diskId }, signal, () => describeDisk(shown("describeDisk"), provider, diskId)),
      listDisks: (signal) =>
        call("listDisks", {}, signal, () => disksOf(shown("listDisks"), provider).map(record.toDisk)),
      describeInstance: (nodeName, signal) => {
        const instance = describeInstance(nodeName);
        const on = instance === undefined ? {} : { instanceId: instance.instanceId };
        return call("describeInstance", on, signal, () => instance);
      },
      listInstances: (signal) =>
        call("listInstances", {}, signal, () =>
          Object.values(this.#file.state.instances).map((instance) => asInstance(provider, instance)),
        ),
      modifyDisk: (diskId, change, signal) =>
        call("modifyDisk", { diskId }, signal, () => work.modify(provider, diskId, change)),
      diskConditions: (diskIds, signal) =>
        call("diskConditions", {}, signal, () => this.#diskConditions(provider, diskIds)),
      listZones: (signal) => call("listZones", {}, signal, () => this.#zones(provider)),
      listStoragePolicies: (signal) =>
        call("listStoragePolicies", {}, signal, () => this.#storagePolicies(provider)),
      zoneCapacity: (zone, signal) =>
        call("zoneCapacity", {}, signal, () => this.#zoneCapacity(provider, zone)),
      createSnapshot: ({ name, diskId }, signal) =>
        call("createSnapshot", { diskId }, signal, () => copies.create(provider, name, diskId)),
      deleteSnapshot: (snapshotId, signal) =>
        call("deleteSnapshot", {}, signal, () => copies.delete(provider, snapshotId)),
      listSnapshots: (signal) =>
        call("listSnapshots", {}, signal, () =>
          snapshots
            .snapshotsOf(this.#file.state)
            .filter((snapshot) => snapshot.state === "ready" && providerOf(snapshot) === provider)
            .map(snapshots.toSnapshot),
        ),
      snapshotBlocks: (request, signal) =>
        call("snapshotBlocks", {}, signal, () => copies.blocks(provider, request)),
      createSnapshotGroup: ({ name, diskIds }, signal) =>
        call("createSnapshotGroup", {}, signal, () => copies.createGroup(provider, name, diskIds)),
      deleteSnapshotGroup: (groupId, signal) =>
        call("deleteSnapshotGroup", {}, signal, () => copies.deleteGroup(provider, groupId)),
      describeSnapshotGroup: (groupId, signal) =>
        call("describeSnapshotGroup", {}, signal, () => {
          const group = snapshots.ownGroup(this.#file.state, provider, groupId);
          return group && snapshots.toGroup(this.#file.state, group);
        }),
      shareCredentials: (diskId, signal) =>
        call("shareCredentials", { diskId }, signal, () => {
          if (provider.asksFor !== "account") {
            throw new CloudError("InvalidArgument", `${provider.name} has no shares with accounts`);
          }
          const { state } = this.#file;
          return accountCredentials(state, idOf(diskOf(state, provider, diskId)));
        }),
    };
  }

  async registerInstance(instance: CloudInstance, _signal: AbortSignal): Promise<void> {
    await this.#file.update((state) => record.withInstances(state, [instance]));
  }

  async deregisterInstance(instanceId: string, _signal: AbortSignal): Promise<void> {
    for (const disk of attachedTo(this.#file.state, instanceId)) {
      await this.#work.detach(providerOf(disk), idOf(disk), instanceId);
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

  async setKnobs(
    op: CloudOp | "*",
    knobs: CloudKnobs,
    _signal: AbortSignal,
    provider?: CloudProvider,
  ): Promise<void> {
    const { staleMs = 0 } = knobs;
    if (staleMs > 0) this.#file.keep(staleMs);
    this.#faults.set(op, knobs, provider);
  }

  async setCondition(
    diskId: string,
    message: string | undefined,
    _signal: AbortSignal,
    provider: CloudProvider = "aws-ebs",
  ): Promise<void> {
    await this.#file.update((state) => {
      const { condition: _before, ...disk } = diskOf(state, providerOf({ provider }), diskId);
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
    const provider = providerOf(caller);
    const ofProvider = caller.provider === undefined ? {} : { provider: caller.provider };
    const { diskId, instanceId } = target;
    let seq: number | undefined;
    try {
      seq = await this.#log.begin(
        { path, component, ...ofProvider, op, diskId, instanceId },
        changing.has(op),
      );
      const zones = this.#zonesOf(provider, target);
      // The work continues after the caller has gone: half a change would be of no use.
      const result = await abortable(
        this.#faults.around({ op, provider: provider.name }, zones, signal, async () => work()),
        signal,
      );
      this.#log.end(seq, "ok");
      return result;
    } catch (error) {
      const failure = signal.aborted ? error : inItsWords(provider, this.#toCloudError(op, error));
      if (seq !== undefined) this.#log.end(seq, failure instanceof CloudError ? failure.code : "Unavailable");
      throw failure;
    }
  }

  /** Where the call's disk and instance are. */
  #zonesOf(provider: Provider, { diskId, instanceId, zones }: CallTarget): NeededZones {
    const { state } = this.#file;
    const disk = diskId === undefined ? undefined : findDisk(state, provider, diskId);
    const known = zones ?? (disk && [disk.zone, ...(disk.replicaZones ?? [])]);
    const instance = instanceId === undefined ? undefined : state.instances[instanceId]?.zone;
    return { ...(known && { disk: known }), ...(instance === undefined ? {} : { instance }) };
  }

  async #diskConditions(
    provider: Provider,
    diskIds: readonly string[],
  ): Promise<Record<string, DiskCondition>> {
    const conditions: Record<string, DiskCondition> = {};
    for (const diskId of diskIds) {
      const disk = findDisk(this.#file.state, provider, diskId);
      if (disk === undefined || disk.state === "deleting") continue;
      const file = await this.#env.host.stat(this.#work.backingFile(disk));
      const isGone = file === undefined && disk.state !== "creating";
      const wrong = disk.condition ?? (isGone ? `the backing file of disk ${diskId} is gone` : undefined);
      conditions[diskId] = { abnormal: wrong !== undefined, message: wrong ?? "the disk is healthy" };
    }
    return conditions;
  }

  async #zoneCapacity(
    provider: Provider,
    zone: string,
  ): Promise<{ readonly availableBytes: bigint; readonly largestBytes: bigint }> {
    const allowed = this.#zones(provider).includes(zone)
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

  #zones({ places }: Provider): readonly string[] {
    if (places === "anywhere") return [""];
    const instances = Object.values(this.#file.state.instances);
    return this.#options.zones ?? [...new Set([...defaultZones, ...instances.map(({ zone }) => zone)])];
  }

  #storagePolicies({ storagePolicies }: Provider): readonly string[] {
    return storagePolicies === undefined ? [] : (this.#options.storagePolicies ?? storagePolicies);
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

function describeDisk(state: CloudState, provider: Provider, diskId: string): ProviderDisk | undefined {
  const disk: DiskRecord | undefined = findDisk(state, provider, diskId);
  return disk === undefined || disk.state === "deleting" ? undefined : record.toDisk(disk);
}

/** The instance as callers of the provider see it: with the provider's limit. */
function asInstance(provider: Provider, { attachLimits: _own, ...instance }: CloudInstance): Instance {
  return {
    ...instance,
    attachLimit: attachLimitOf(provider, { ...instance, ...(_own && { attachLimits: _own }) }),
  };
}

/** The failure with the provider's own code in front, as its clients know it. */
function inItsWords({ codes }: Provider, error: CloudError): CloudError {
  const code = codes[error.code];
  if (code === undefined) return error;
  return new CloudError(error.code, `${code}: ${error.message}`, { cause: error.cause });
}

function least(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

interface CallTarget {
  readonly diskId?: string;
  readonly instanceId?: string;
  /** The zones that the disk is to be in. */
  readonly zones?: readonly string[];
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
