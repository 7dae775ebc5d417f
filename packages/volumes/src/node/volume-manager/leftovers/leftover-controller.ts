/** Cleans up the directories that reconstruction did not understand. Key: the directory's path. */
import {
  type Actions,
  type Controller,
  observeAgain,
  type Pass,
  settled,
  startController,
} from "@longshore/kube";
import { backoffMs, type Component, errorChain, type KeyedLock, type RuntimeEnv } from "@longshore/runtime";
import { operationBackoff } from "../../../framework/operation-backoff.ts";
import {
  isBlockVolumePlugin,
  isDeviceMountable,
  type VolumePlugin,
} from "../../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../../framework/volume-spec.ts";
import type { ActualState } from "../actual-state.ts";
import type { DesiredState, DesiredVolume } from "../desired-state.ts";
import type { NodePods } from "../pods/node-pods.ts";
import { removeSubPaths } from "../sub-paths.ts";
import { tearDownByName, unmapByName } from "../volumes/device-maps.ts";
import { podMountKey, requireNoOtherMounts, type VolumePlaces } from "../volumes/volume-places.ts";
import { decideLeftoverStep, type LeftoverStep, type ObservedLeftover } from "./decide-leftover-step.ts";
import type { Leftovers } from "./leftovers.ts";
import type { Leftover, PodLeftover, StagedLeftover } from "./reconstruct-volumes.ts";

/** What it works with. */
export interface LeftoverControllerEnv extends RuntimeEnv, VolumePlaces {
  readonly leftovers: Leftovers;
  readonly pods: NodePods;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  /** Held while something is mounted or unmounted at a place. */
  readonly places: KeyedLock;
  readonly hasAddedPods: () => boolean;
  /** A directory is not left any more. */
  readonly onForgotten: (leftover: Leftover) => void;
}

/** Runs until it is stopped. */
export class LeftoverController implements Component {
  readonly #env: LeftoverControllerEnv;
  readonly #controller: Controller;
  readonly #failures = new Map<string, { readonly count: number; readonly retryAtMs: number }>();

  constructor(env: LeftoverControllerEnv) {
    this.#env = env;
    this.#controller = startController<ObservedLeftover, LeftoverStep>(env, {
      name: "node_leftovers",
      sources: [],
      workers: 4,
      observe: (path) => this.#observe(path),
      decide: decideLeftoverStep,
      actions: this.#actions(),
    });
  }

  stop(): Promise<void> {
    return this.#controller.stop();
  }

  /** Looks at all directories: there are few, and mostly none. */
  wake(): void {
    for (const { path } of this.#env.leftovers.all) this.#controller.wake(path);
  }

  #observe(path: string): ObservedLeftover | undefined {
    const leftover = this.#env.leftovers.get(path);
    if (leftover === undefined) return undefined;
    return {
      nowMs: this.#env.clock.monotonicMs(),
      isKnownAgain: this.#isKnownAgain(leftover),
      mayUnmount: this.#mayUnmount(leftover),
      retryAtMs: this.#failures.get(path)?.retryAtMs ?? 0,
    };
  }

  #isKnownAgain(leftover: Leftover): boolean {
    return leftover.kind === "pod" ? this.#isMountedForPod(leftover) : this.#isStagedVolumeKnown(leftover);
  }

  #isMountedForPod({ podUID, path }: PodLeftover): boolean {
    const { actual } = this.#env;
    return actual.namesOf(podUID).some((name) => {
      const mount = actual.podOf(name, podUID);
      return mount?.state === "mounted" && (mount.path === path || mount.path.startsWith(`${path}/`));
    });
  }

  #isStagedVolumeKnown({ deviceMountPath }: StagedLeftover): boolean {
    for (const { device } of this.#env.actual.volumes())
      if (device.path === deviceMountPath && device.state !== "notMounted") return true;
    return false;
  }

  #mayUnmount(leftover: Leftover): boolean {
    const { pods, desired } = this.#env;
    if (leftover.kind === "staged") return this.#mayUnstage(leftover);
    const isWanted = desired.volumesOf(leftover.podUID).some((volume) => wantsPlace(volume, leftover));
    return pods.mayUnmount(leftover.podUID) && !isWanted;
  }

  /** A pod's directory that was not understood may be of any volume, so of this one. */
  #mayUnstage(leftover: StagedLeftover): boolean {
    const { pods, desired, actual, leftovers, hasAddedPods } = this.#env;
    if (!hasAddedPods() || pods.hasUnresolved()) return false;
    if (leftovers.all.some(({ kind, plugin }) => kind === "pod" && plugin === leftover.plugin)) return false;
    for (const volume of desired.volumes()) if (wantsStaging(volume, leftover)) return false;
    for (const { plugin, spec, pods: mounts } of actual.volumes())
      if (mounts.size > 0 && isStagedAt(plugin, spec, leftover)) return false;
    return true;
  }

  #actions(): Actions<ObservedLeftover, LeftoverStep> {
    return {
      forget: (_step, _observed, { key }) => this.#forget(key),
      unmount: (_step, _observed, pass) => this.#unmount(pass),
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      settle: () => settled,
    };
  }

  #forget(path: string) {
    const leftover = this.#env.leftovers.get(path);
    this.#env.leftovers.forget(path);
    this.#failures.delete(path);
    if (leftover !== undefined) this.#env.onForgotten(leftover);
    return settled;
  }

  async #unmount({ key, signal }: Pass) {
    const leftover = this.#env.leftovers.get(key);
    if (leftover === undefined) return settled;
    try {
      return await this.#env.places.run(placeOf(leftover), async () => {
        // A mount may have taken the place while this waited for it.
        if (this.#isKnownAgain(leftover) || !this.#mayUnmount(leftover)) return observeAgain;
        await unmountByName(this.#env, leftover, signal);
        return this.#forget(key);
      });
    } catch (error) {
      signal.throwIfAborted();
      this.#failed(key, error);
      return observeAgain;
    }
  }

  #failed(path: string, error: unknown): void {
    const count = (this.#failures.get(path)?.count ?? 0) + 1;
    const retryInMs = backoffMs(operationBackoff, count);
    this.#failures.set(path, { count, retryAtMs: this.#env.clock.monotonicMs() + retryInMs });
    const fields = { volume: path, retryInMs, error: errorChain(error) };
    this.#env.logger.warn("volume_unmount failed", fields);
  }
}

async function unmountByName(places: VolumePlaces, leftover: Leftover, signal: AbortSignal): Promise<void> {
  const { plugin } = leftover;
  if (isBlockVolumePlugin(plugin)) {
    if (leftover.kind === "pod" && leftover.isBlock === true) {
      return unmapByName(places, plugin, leftover, signal);
    }
    if (leftover.kind === "staged" && leftover.block !== undefined) {
      const device = { ...leftover.block, path: leftover.deviceMountPath };
      return tearDownByName(places.host, plugin, device, signal);
    }
  }
  if (leftover.kind === "pod") {
    await removeSubPaths(places, leftover.podUID, leftover.volumeName);
    const unmounter = await plugin.newUnmounter(leftover.volumeName, leftover.podUID);
    return unmounter.tearDown(signal);
  }
  await requireNoOtherMounts(places, leftover.deviceMountPath);
  if (isDeviceMountable(plugin)) {
    await plugin.newDeviceUnmounter().unmountDevice(leftover.deviceMountPath, signal);
  }
}

function placeOf(leftover: Leftover): string {
  if (leftover.kind === "staged") return leftover.deviceMountPath;
  return podMountKey(leftover.plugin, leftover.podUID, leftover.volumeName);
}

function wantsPlace({ plugin, pods }: DesiredVolume, leftover: PodLeftover): boolean {
  const pod = pods.get(leftover.podUID);
  return pod !== undefined && plugin === leftover.plugin && specName(pod.spec) === leftover.volumeName;
}

function wantsStaging({ plugin, pods }: DesiredVolume, leftover: StagedLeftover): boolean {
  const [pod] = pods.values();
  return pod !== undefined && isStagedAt(plugin, pod.spec, leftover);
}

function isStagedAt(plugin: VolumePlugin, spec: VolumeSpec, leftover: StagedLeftover): boolean {
  if (plugin !== leftover.plugin) return false;
  if (leftover.block !== undefined) return specName(spec) === leftover.block.volumeName;
  if (!isDeviceMountable(plugin)) return false;
  return plugin.newDeviceMounter().getDeviceMountPath(spec) === leftover.deviceMountPath;
}
