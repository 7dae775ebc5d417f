/** What a qualification does with volumes: claims, pods that write records and read them back, and the end of both. */
import { type PersistentVolume, type Pod, resources, type Stored } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import type { ObservedCluster } from "../cluster/observed-cluster.ts";
import type { ClusterPlugin } from "../layout/plugins.ts";
import { withDevices } from "../records/device-volumes.ts";
import { acknowledgedRecords, lostRecords } from "../records/records.ts";
import { claimVolume, namespace, type PodWork, volumePod } from "../records/volume-pod.ts";
import { isPodReady } from "../workloads/is-pod-ready.ts";
import { claimOf } from "./claim-of.ts";

/** The commands of pods: programs and their arguments. */
export interface RecordCommands {
  /** A writer of records on a mounted volume, and a reader that prints them. */
  readonly writerCommand: readonly string[];
  readonly readerCommand: readonly string[];
  /** The same on a device. */
  readonly deviceWriterCommand: readonly string[];
  readonly deviceReaderCommand: readonly string[];
}

/** What {@link VolumeWork} runs on. */
export interface VolumeWorkEnv {
  readonly clock: Clock;
  readonly cluster: Pick<ObservedCluster, "kube" | "podLogs">;
  readonly plugin: ClusterPlugin;
  readonly commands: RecordCommands;
}

/** A volume that is to be made. */
export interface WantedVolume {
  /** Of the claim, and of its first pod. */
  readonly name: string;
  /** The zone in which its pod must run; any when left out. */
  readonly zone?: string | undefined;
  readonly volumeMode?: VolumeMode;
}

/** How pods get a volume. */
export type VolumeMode = "Filesystem" | "Block";

/** The size of the volumes. */
export const claimSize = "1Gi";

const pollMs = 50;

/** A behaviour that does not show what it should. */
export class BehaviourError extends Error {
  override readonly name = "BehaviourError";
}

/** A pod on a volume. */
export interface WorkOnVolume extends Omit<PodWork, "command"> {
  readonly volumeMode?: VolumeMode | undefined;
}

function podOf(work: WorkOnVolume, command: readonly string[], deviceCommand: readonly string[]): Pod {
  const { volumeMode, ...onVolume } = work;
  if (volumeMode === "Block") return withDevices(volumePod({ ...onVolume, command: deviceCommand }));
  return volumePod({ ...onVolume, command });
}

/** Claims and pods of a qualification. Each method waits for its outcome, as long as its signal lets it. */
export class VolumeWork {
  readonly #env: VolumeWorkEnv;

  constructor(env: VolumeWorkEnv) {
    this.#env = env;
  }

  /** A claim and a writer on it; the volume once records are acknowledged. */
  async provision(
    { name, zone, volumeMode }: WantedVolume,
    signal: AbortSignal,
  ): Promise<Stored<PersistentVolume>> {
    const { cluster, plugin } = this.#env;
    const { kube } = cluster;
    const claimed = claimOf(plugin, name, claimSize, volumeMode === "Block" ? { volumeMode } : {});
    await kube.create(resources.persistentVolumeClaims, claimed, { signal });
    await this.write({ name, volume: claimVolume(name), zone, volumeMode }, signal);
    const claim = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
    const pv = await kube.get(
      resources.persistentVolumes,
      { name: claim?.spec?.volumeName ?? "" },
      { signal },
    );
    if (pv === undefined) throw new BehaviourError(`claim ${name} has no PersistentVolume`);
    return pv;
  }

  /** Starts a writer and waits until it has acknowledged records. */
  async write(work: WorkOnVolume, signal: AbortSignal): Promise<Stored<Pod>> {
    const { cluster, commands } = this.#env;
    const { kube } = cluster;
    const { writerCommand, deviceWriterCommand } = commands;
    await kube.create(resources.pods, podOf(work, writerCommand, deviceWriterCommand), { signal });
    let ready: Stored<Pod> | undefined;
    await this.until(async () => {
      ready = await kube.get(resources.pods, { namespace, name: work.name }, { signal });
      return ready !== undefined && isPodReady(ready);
    }, signal);
    await this.until(async () => (await this.acknowledged(work.name)).size >= 3, signal);
    return ready as Stored<Pod>;
  }

  /** What the writer of this name has acknowledged. */
  async acknowledged(writer: string): Promise<ReturnType<typeof acknowledgedRecords>> {
    return acknowledgedRecords(await this.#env.cluster.podLogs(writer));
  }

  /** Reads through a new pod what the writer of this name acknowledged; returns the number of records. */
  async readBack(writer: string, work: WorkOnVolume, signal: AbortSignal): Promise<number> {
    const { cluster, commands } = this.#env;
    const { kube } = cluster;
    const { name } = work;
    const { readerCommand, deviceReaderCommand } = commands;
    await kube.create(resources.pods, podOf(work, readerCommand, deviceReaderCommand), { signal });
    await this.until(async () => {
      const pod = await kube.get(resources.pods, { namespace, name }, { signal });
      if (pod?.status?.phase === "Failed") throw new BehaviourError(`pod ${name} could not read the volume`);
      return pod?.status?.phase === "Succeeded";
    }, signal);
    const text = (await this.#env.cluster.podLogs(name)).join("");
    await this.removePod(name, signal);
    const acknowledged = await this.acknowledged(writer);
    const lost = lostRecords(writer, text, acknowledged);
    if (lost.length > 0) {
      throw new BehaviourError(
        `${lost.length} of ${acknowledged.size} acknowledged records are not on the volume`,
      );
    }
    return acknowledged.size;
  }

  /** Fine when it is gone. */
  async removePod(name: string, signal: AbortSignal): Promise<void> {
    const { kube } = this.#env.cluster;
    if ((await kube.get(resources.pods, { namespace, name }, { signal })) === undefined) return;
    await kube.delete(resources.pods, { namespace, name }, { signal });
    await this.until(
      async () => (await kube.get(resources.pods, { namespace, name }, { signal })) === undefined,
      signal,
    );
  }

  /** Deletes the claim; its volume goes with it. */
  async removeClaim(name: string, pvName: string, signal: AbortSignal): Promise<void> {
    const { kube } = this.#env.cluster;
    await kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal });
    await this.until(
      async () => (await kube.get(resources.persistentVolumes, { name: pvName }, { signal })) === undefined,
      signal,
    );
  }

  /** Waits until it holds. */
  async until(holds: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    while (!(await holds())) await this.#env.clock.sleep(pollMs, signal);
  }
}
