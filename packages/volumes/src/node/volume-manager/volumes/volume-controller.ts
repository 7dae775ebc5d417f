/**
 * Brings each volume of the node to what its pods need. Key: unique volume name, so that nothing happens to one
 * volume twice at a time, whatever number of volumes is worked on.
 */
import { type Controller, startController } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { RegisteredCsiDrivers } from "../../../plugins/csi/registered-csi-drivers.ts";
import type { ActualVolume } from "../actual-state.ts";
import type { DesiredVolume } from "../desired-state.ts";
import {
  type AttachmentView,
  decideVolumeStep,
  type ObservedVolume,
  type VolumeStep,
} from "./decide-volume-step.ts";
import { volumeActions } from "./volume-actions.ts";
import type { VolumeActionsEnv } from "./volume-actions-env.ts";

/** More volumes than a node has: passes wait for disks and drivers, and one that hangs must not hold up others. */
const workers = 512;
/** A pass works off all pods of a volume, with some steps for each. */
const stepsMax = 10_000;

/** What it works with. */
export interface VolumeControllerEnv extends VolumeActionsEnv {
  /** Undefined where there is no CSI plugin. */
  readonly csiDrivers: RegisteredCsiDrivers | undefined;
  readonly hasAddedPods: () => boolean;
}

/** Runs from `start` until it is stopped. */
export class VolumeController implements Component {
  readonly #env: VolumeControllerEnv;
  readonly #controller: Controller;

  constructor(env: VolumeControllerEnv) {
    this.#env = env;
    this.#controller = startController<ObservedVolume, VolumeStep>(env, {
      name: "node_volumes",
      sources: [],
      workers,
      stepsMax,
      backoff: { initialMs: 200, maximumMs: 10_000 },
      observe: (uniqueName) => this.#observe(uniqueName),
      decide: decideVolumeStep,
      actions: volumeActions(env),
    });
  }

  stop(): Promise<void> {
    return this.#controller.stop();
  }

  /** Looks at the volume. */
  wake(uniqueName: string): void {
    this.#controller.wake(uniqueName);
  }

  #observe(uniqueName: string): ObservedVolume {
    const env = this.#env;
    const desired = env.desired.get(uniqueName);
    const actual = env.actual.get(uniqueName);
    const mountedFor = [...(actual?.pods.keys() ?? [])];
    return {
      nowMs: env.clock.monotonicMs(),
      desired,
      actual,
      mayUnmount: new Set(mountedFor.filter((podUID) => env.pods.mayUnmount(podUID))),
      toRemount: env.remounts.of(uniqueName),
      isDriverMissing: isDriverMissing(env, desired, actual),
      isPathDecided: env.paths.isDecided(desired?.origin),
      hasAddedPods: env.hasAddedPods(),
      attachment: this.#attachmentOf(uniqueName),
      failures: env.records.of(uniqueName).failures,
      size: env.sizes.get(uniqueName),
      republishAtMs: env.republications.of(uniqueName),
      mount: undefined,
      map: undefined,
      failed: undefined,
    };
  }

  #attachmentOf(uniqueName: string): AttachmentView {
    const { cachedNode, records, isReportedInUse } = this.#env;
    const { lookAtMs, refuted } = records.of(uniqueName);
    const node = cachedNode();
    const attached = node?.status?.volumesAttached ?? [];
    // A cache that the live Node has already proved wrong must not send us there again at once.
    const isListed = node !== refuted && attached.some(({ name }) => name === uniqueName);
    return { isReported: isReportedInUse(uniqueName), isListed, lookAtMs };
  }
}

/** Whether the volume is of a CSI driver that has not registered. */
export function isDriverMissing(
  { csiDrivers }: Pick<VolumeControllerEnv, "csiDrivers">,
  desired: DesiredVolume | undefined,
  actual: ActualVolume | undefined,
): boolean {
  const [pod] = desired?.pods.values() ?? [];
  const spec = (actual ?? pod)?.spec;
  const driver = spec?.persistentVolume?.spec?.csi?.driver ?? spec?.volume?.csi?.driver;
  return driver !== undefined && csiDrivers?.get(driver) === undefined;
}
