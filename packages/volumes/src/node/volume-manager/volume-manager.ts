/**
 * The volume manager: brings what is mounted on this node to what its pods need, and back.
 *
 *   pods ──pod controller──▶ desired state ─┐
 *                                           ├─ volume controller ──▶ plugin calls ──▶ actual state
 *   disk ──restore (once)───────────────────┘         ▲─────────────────┘
 *
 * Each pod and each volume is looked at when something about it changed or a retry is due, never on a fixed beat.
 * Source: docs/behaviour/node-agent.md 3-9.
 *
 * Invariants
 *  - Nothing is mounted or unmounted before what an earlier agent left was read back from disk.
 *  - Nothing is mounted before the controller has confirmed the attachment and the posted
 *    `volumesInUse` names the volume.
 *  - Nothing is unmounted for a pod that may still use it, or about which too little is known.
 *  - A volume leaves `volumesInUse` only after it is certainly unmounted.
 */
import type { Pod, Stored } from "@longshore/kube";
import { type Component, KeyedLock, stopAll, TaskGroup } from "@longshore/runtime";
import { type CountedState, CountedVolumes } from "../../metrics/counted-volumes.ts";
import { storageOperations } from "../../metrics/storage-operations.ts";
import { volumePluginLabel } from "../../metrics/volume-plugin-label.ts";
import { type ActualChange, ActualState } from "./actual-state.ts";
import { DesiredState, type DesiredVolume } from "./desired-state.ts";
import { LeftoverController } from "./leftovers/leftover-controller.ts";
import { Leftovers } from "./leftovers/leftovers.ts";
import type { ManagedVolumes, MountedDisk, PluginNames, VolumeChange } from "./managed-volumes.ts";
import {
  mountedDisksOf,
  mountedVolumesOf,
  type NodeVolumeStates,
  namesInUse,
  namesUnlisted,
  nothingMounted,
  type VolumeInPod,
} from "./node-volume-states.ts";
import { NodePods } from "./pods/node-pods.ts";
import { PodController } from "./pods/pod-controller.ts";
import { usedVolumes } from "./pods/pod-volume-spec.ts";
import { ReportedInUse } from "./reported-in-use.ts";
import { bindSubPath, type SubPathUse, subPathError } from "./sub-paths.ts";
import type { VolumeManagerEnv, VolumeManagerOptions } from "./volume-manager-env.ts";
import type { VolumePath } from "./volume-paths.ts";
import { type VolumeUse, volumeUseOf } from "./volume-use.ts";
import { VolumeWaits } from "./volume-waits.ts";
import { MountsInFlight } from "./volumes/mounts-in-flight.ts";
import { Remounts } from "./volumes/remounts.ts";
import { Republications } from "./volumes/republications.ts";
import { VolumeController } from "./volumes/volume-controller.ts";
import { podMountKey } from "./volumes/volume-places.ts";
import { VolumeRecords, wholeVolume } from "./volumes/volume-records.ts";
import { VolumeSizes } from "./volumes/volume-sizes.ts";
import { waitForVolumes } from "./wait-for-volumes.ts";

/** Runs the volumes of one node. */
export class VolumeManager implements ManagedVolumes, Component {
  readonly #env: VolumeManagerEnv;
  readonly #options: VolumeManagerOptions;
  readonly #states: NodeVolumeStates = {
    pods: new NodePods(),
    desired: new DesiredState((volume) => this.#desiredChanged(volume)),
    actual: new ActualState((change) => this.#actualChanged(change)),
    leftovers: new Leftovers(),
    records: new VolumeRecords(),
    mounts: new MountsInFlight(),
    remounts: new Remounts(),
    verifying: new Set(),
  };
  /** Held while something is mounted or unmounted at a place. */
  readonly #places = new KeyedLock();
  readonly #reported = new ReportedInUse();
  readonly #waits = new VolumeWaits();
  readonly #listeners = new Set<(change: VolumeChange) => void>();
  readonly #podController: PodController;
  readonly #volumeController: VolumeController;
  readonly #leftoverController: LeftoverController;
  readonly #tasks: TaskGroup;
  readonly #counted: CountedVolumes;
  #isRestored = false;
  #attachmentsFound: readonly string[] = [];

  constructor(env: VolumeManagerEnv, options: VolumeManagerOptions) {
    this.#env = env;
    this.#options = options;
    this.#counted = new CountedVolumes(env.meter, "volume_manager_total_volumes");
    const hasAddedPods = () => this.#podController.hasAddedPods;
    const shared = { ...env, ...options, ...this.#states, places: this.#places, hasAddedPods };
    this.#podController = new PodController({
      ...shared,
      onDecided: (podUID) => this.#podDecided(podUID),
      onPodsAdded: () => {
        this.#wakeAll();
        this.#tasks.spawn(() => this.#wakePodsWithDirectories());
      },
      onRelabelled: (pod) => this.#podRelabelled(pod),
    });
    this.#volumeController = new VolumeController({
      ...shared,
      sizes: new VolumeSizes(env.random),
      republications: new Republications(env.random),
      measured: storageOperations(env),
      isReportedInUse: (uniqueName) => this.#reported.has(uniqueName),
      foundNotInUse: (uniqueName) => this.#reported.withdraw(uniqueName),
      onOperationEnd: (podUID) => this.#operationEnded(podUID),
    });
    this.#leftoverController = new LeftoverController({
      ...shared,
      onForgotten: (leftover) => {
        if (leftover.kind === "pod") this.#podController.wake(leftover.podUID);
        this.#leftoverController.wake();
        this.#emit({ uniqueName: undefined, origin: undefined });
      },
    });
    this.#tasks = new TaskGroup((error) => env.logger.error("volume manager task ended", { error }));
  }

  /** Reads back what is mounted, then works. */
  start(): void {
    this.#tasks.spawn((signal) => this.#restore(signal));
    const unsubscribe = this.#env.csiDrivers?.onChange(() => this.#wakeAll());
    if (unsubscribe !== undefined) {
      this.#tasks.signal.addEventListener("abort", unsubscribe, { once: true });
    }
  }

  async stop(): Promise<void> {
    await stopAll([this.#tasks, this.#podController, this.#volumeController, this.#leftoverController]);
    this.#counted.clear();
  }

  setPods(pods: readonly Stored<Pod>[]): void {
    this.#podController.setPods(pods);
  }

  /** These volumes may have come to be attached: look at them. */
  wakeVolumes(uniqueNames: Iterable<string>): void {
    for (const uniqueName of uniqueNames) this.#wakeVolume(uniqueName);
  }

  /** Volumes of the CSI driver that pods wait for need no attach any more. What was attached stays in use until it is unmounted. */
  needsNoAttach(driver: string): void {
    const { desired } = this.#states;
    for (const { uniqueName, pods } of [...desired.volumes()]) {
      const [pod] = pods.values();
      if (pod?.spec.persistentVolume?.spec?.csi?.driver === driver) desired.needsNoAttach(uniqueName);
    }
  }

  /** What the volume is made from has changed: it is set up again for the pod, which goes on using it meanwhile. */
  remount(uniqueName: string, podUID: string): void {
    const { desired, remounts, records } = this.#states;
    if (desired.podOf(uniqueName, podUID) === undefined) return;
    remounts.request(uniqueName, podUID);
    // What made it fail may be gone with the change.
    records.succeeded(uniqueName, podUID);
    this.#wakeVolume(uniqueName);
  }

  /** `status.volumesInUse`, or undefined while the previous list has to stand. */
  volumesInUse(): readonly string[] | undefined {
    if (!this.#isRestored || !this.#podController.hasAddedPods) return undefined;
    const names = namesInUse(this.#states);
    this.#reported.handOut(names);
    return names;
  }

  /** `status.volumesInUse` of a Node that is made: what may be here. Undefined while that is not read back. */
  volumesFound(): readonly string[] | undefined {
    return this.#isRestored ? namesInUse(this.#states) : undefined;
  }

  /** What was found at the start and no one else lists, unmounted since or not: an unmount does not detach. */
  attachmentsFound(): readonly string[] {
    return this.#attachmentsFound;
  }

  markReportedInUse(names: readonly string[]): void {
    const unreported = names.filter((name) => !this.#reported.has(name));
    if (this.#reported.posted(names)) this.wakeVolumes(unreported);
  }

  mountedVolumes(podUID: string): ReadonlyMap<string, VolumeInPod> {
    return mountedVolumesOf(this.#states, podUID);
  }

  /** @throws SubPathError */
  async bindSubPath(podUID: string, use: SubPathUse): Promise<string> {
    const mounted = mountedVolumesOf(this.#states, podUID).get(use.volume);
    const volume = this.#states.desired
      .volumesOf(podUID)
      .find(({ pods }) => pods.get(podUID)?.outerNames.has(use.volume));
    if (mounted === undefined || volume === undefined) throw subPathError(use, "the volume is not mounted");
    return this.#places.run(podMountKey(volume.plugin, podUID, mounted.volumeName), async () => {
      // It may have been unmounted while this waited.
      if (this.mountedVolumes(podUID).get(use.volume) === undefined) {
        throw subPathError(use, "the volume is not mounted any more");
      }
      return bindSubPath({ ...this.#env, ...this.#options }, podUID, mounted, use);
    });
  }

  /** Who has the volume mounted, and where; undefined: no pod. */
  volumeUse(uniqueName: string): VolumeUse | undefined {
    return volumeUseOf(this.#states, uniqueName);
  }

  podVolumesGone(podUID: string): boolean {
    if (!this.#isRestored || !this.#podController.hasAddedPods) return false;
    if (this.#states.pods.get(podUID) !== undefined && !this.#states.pods.isOver(podUID)) return false;
    const { desired, actual, mounts, leftovers } = this.#states;
    return [desired, actual, mounts, leftovers].every((state) => !state.hasPod(podUID));
  }

  async waitForAttachAndMount(pod: Stored<Pod>, signal: AbortSignal, withinMs: number): Promise<void> {
    if (usedVolumes(pod).length === 0) return;
    this.#podController.reprocessForStart(pod.metadata.uid);
    const { clock, csiDrivers } = this.#env;
    await waitForVolumes({ ...this.#states, clock, csiDrivers, waits: this.#waits }, pod, withinMs, signal);
  }

  // ManagedVolumes

  nothingMounted(path: VolumePath, plugin: PluginNames): boolean {
    return this.#isRestored && nothingMounted(this.#states, path, plugin);
  }

  isMerelyWanted(uniqueName: string): boolean {
    return (
      this.#states.desired.get(uniqueName) !== undefined && this.#states.actual.get(uniqueName) === undefined
    );
  }

  mountedDisks(): readonly MountedDisk[] {
    return mountedDisksOf(this.#states);
  }

  onVolumeChange(listener: (change: VolumeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  pathsChanged(): void {
    const { manager } = this.#env.paths;
    for (const { uniqueName, origin, plugin } of [...this.#states.desired.volumes()]) {
      if (origin === undefined) continue;
      const isOnCsi = plugin.pluginName !== origin;
      const isOnItsWay = manager.isMigrationEnabledForPlugin(origin) === isOnCsi;
      // What is here goes the way it came (docs/contract.md C1); what is only wanted is resolved again.
      if (isOnItsWay || this.#states.actual.get(uniqueName) !== undefined) this.#wakeVolume(uniqueName);
      else this.#states.desired.deleteVolume(uniqueName);
    }
    this.#podController.reprocessAll();
  }

  /** Reads back from disk what an earlier agent left; nothing is mounted or unmounted before. */
  async #restore(signal: AbortSignal): Promise<void> {
    const { actual, leftovers } = this.#states;
    await leftovers.restore({ ...this.#env, ...this.#options, actual }, signal);
    this.#isRestored = true;
    this.#attachmentsFound = namesUnlisted(this.#states);
    this.#podController.wakeMounted();
    this.#wakeAll();
  }

  /** Pods of an earlier agent may have left directories; those that are gone are cleaned up. */
  async #wakePodsWithDirectories(): Promise<void> {
    const directories = await this.#env.host.readDirectory(`${this.#options.rootDir}/pods`);
    for (const podUID of directories ?? []) this.#podController.wake(podUID);
  }

  // What changed, and who has to look

  #wakeVolume(uniqueName: string): void {
    if (this.#isRestored) this.#volumeController.wake(uniqueName);
  }

  /** Something concerns every volume: the restore, the first look at the pods, a driver that registered. */
  #wakeAll(): void {
    for (const { uniqueName } of this.#states.desired.volumes()) this.#wakeVolume(uniqueName);
    for (const { uniqueName } of this.#states.actual.volumes()) this.#wakeVolume(uniqueName);
    this.#leftoverController.wake();
    this.#emit({ uniqueName: undefined, origin: undefined });
  }

  #desiredChanged({ uniqueName, origin, plugin, pods }: DesiredVolume): void {
    const [pod] = pods.values();
    this.#count("desired_state_of_world", uniqueName, pod && volumePluginLabel(plugin.pluginName, pod.spec));
    this.#states.mounts.keepOnly(uniqueName, pods);
    this.#wakeVolume(uniqueName);
    this.#leftoverController.wake();
    this.#emit({ uniqueName, origin });
  }

  #actualChanged({ uniqueName, origin, podUID }: ActualChange): void {
    const volume = this.#states.actual.get(uniqueName);
    const label = volume && volumePluginLabel(volume.plugin.pluginName, volume.spec);
    this.#count("actual_state_of_world", uniqueName, label);
    this.#emit({ uniqueName, origin });
    if (podUID === undefined) return;
    this.#waits.changed(podUID);
    if (!this.#isRestored) return;
    this.#leftoverController.wake();
    if (!this.#states.actual.hasPod(podUID)) this.#podController.wake(podUID);
  }

  /** @param label undefined: the volume is in the state no more */
  #count(state: CountedState, uniqueName: string, label: string | undefined): void {
    if (label === undefined) this.#counted.drop(state, uniqueName);
    else this.#counted.put(state, uniqueName, label);
  }

  #podDecided(podUID: string): void {
    this.wakeVolumes(this.#states.actual.namesOf(podUID));
    this.#leftoverController.wake();
    this.#changed(podUID);
  }

  /** Volumes that show the pod's labels or annotations are set up again with the new ones. */
  #podRelabelled(pod: Stored<Pod>): void {
    const { uid } = pod.metadata;
    for (const { pods, ...volume } of this.#states.desired.volumesOf(uid)) {
      const wanted = pods.get(uid);
      if (wanted === undefined || volume.plugin.requiresRemount?.(wanted.spec) !== true) continue;
      this.#states.desired.add({ ...volume, ...wanted, pod });
      this.remount(volume.uniqueName, uid);
    }
  }

  /** The mount that ended may have been the last that a pod without an object had. */
  #operationEnded(podUID: string): void {
    const isPod = podUID !== wholeVolume;
    if (isPod && this.#states.pods.get(podUID) === undefined) this.#podController.wake(podUID);
    this.#changed(podUID);
  }

  #changed(podUID: string): void {
    this.#waits.changed(podUID);
    this.#options.onChange();
  }

  #emit(change: VolumeChange): void {
    for (const listener of this.#listeners) listener(change);
    this.#options.onChange();
  }
}
