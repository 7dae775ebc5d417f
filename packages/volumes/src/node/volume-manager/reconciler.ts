/**
 * One pass of the reconciler: compares what is desired with what is, and starts what is missing.
 * Unmounts come before mounts, so that a volume that moves between pods is released first; devices
 * come last. Source: docs/behaviour/node-agent.md 6.
 */
import { type EventRecorder, involvedObject, type Node, resources } from "@longshore/kube";
import { errorChain, type RuntimeEnv, StoppedError } from "@longshore/runtime";
import {
  createOperationExecutor,
  type OperationEnd,
  type OperationExecutor,
} from "../../framework/operations.ts";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { NodeMigration } from "../migration/node-migration.ts";
import type { ActualPod, ActualState, ActualVolume } from "./actual-state.ts";
import type { DesiredPod, DesiredState, DesiredVolume } from "./desired-state.ts";
import type { Leftovers } from "./leftovers.ts";
import {
  mountVolume,
  type OperationEnv,
  unmountDevice,
  unmountVolume,
  verifyControllerAttached,
} from "./mount-operations.ts";
import type { Populator } from "./populator.ts";
import type { LeftoverDirectory } from "./reconstruct.ts";
import type { ReportedInUse } from "./reported-in-use.ts";

/** An attachment is looked for in the live Node this often, whatever the cached one says. */
const verifyAnywayMs = 5_000;

/** What the reconciler works with. */
export interface ReconcilerEnv extends RuntimeEnv {
  readonly desired: DesiredState;
  readonly actual: ActualState;
  readonly populator: Populator;
  readonly leftovers: Leftovers;
  readonly reported: ReportedInUse;
  readonly operations: OperationEnv;
  readonly migration: NodeMigration;
  readonly events: EventRecorder;
  /** Undefined where there is no CSI plugin. */
  readonly csiDrivers: RegisteredCsiDrivers | undefined;
  /** This node as last seen, from a cache; a hint only. */
  readonly cachedNode: () => Node | undefined;
  /** A mount ended: who waits for volumes should look. */
  readonly onChange: () => void;
  /** An operation ended: a pass is due. */
  readonly onOperationEnd: () => void;
}

/** Starts operations, and remembers what became of them. */
export class Reconciler {
  readonly #env: ReconcilerEnv;
  readonly #executor: OperationExecutor;
  /** Mounts that run or will be tried again, by pod: reasons why they have not succeeded. */
  readonly #mountErrors = new Map<string, Map<string, string>>();
  readonly #mountsInFlight = new Map<string, number>();
  readonly #verifyAt = new Map<string, number>();
  /** The cached Node as it was when the live one did not show the volume as attached. */
  readonly #refuted = new Map<string, Node | undefined>();
  /** Mounts in flight that wait for a device or attachment: to be given up when the pod goes. */
  readonly #attachWaits = new Set<{ uniqueName: string; podUID: string; giveUp: AbortController }>();
  #stopped = false;

  constructor(env: ReconcilerEnv) {
    this.#env = env;
    this.#executor = createOperationExecutor(env, { onEnd: (end) => this.#operationEnded(end) });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#executor.stop();
  }

  isOperationPending(uniqueName: string): boolean {
    return this.#executor.isOperationPending({ volumeName: uniqueName });
  }

  /** Pods that a mount runs for right now. */
  podsWithMountInFlight(): ReadonlySet<string> {
    return new Set(this.#mountsInFlight.keys());
  }

  /** Why mounts of the pod failed at their last try. */
  mountErrorsOf(podUID: string): readonly string[] {
    return [...(this.#mountErrors.get(podUID)?.values() ?? [])];
  }

  /** One pass over all volumes. @returns milliseconds until the next one is due, or undefined */
  pass(): number | undefined {
    const due: number[] = [];
    for (const uid of [...this.#mountErrors.keys()]) {
      if (!this.#env.populator.isKnown(uid)) this.#mountErrors.delete(uid);
    }
    for (const name of [...this.#verifyAt.keys(), ...this.#refuted.keys()]) {
      if (this.#env.desired.get(name) === undefined) this.#forgetVerification(name);
    }
    for (const { uniqueName, podUID, giveUp } of this.#attachWaits) {
      if (this.#env.desired.podOf(uniqueName, podUID) === undefined) giveUp.abort(new StoppedError());
    }
    for (const volume of this.#env.actual.volumes()) {
      for (const pod of volume.pods.values()) this.#unmountIfUnwanted(volume, pod, due);
    }
    for (const leftover of this.#env.leftovers.directories) this.#removeLeftover(leftover, due);
    for (const volume of this.#env.desired.volumes()) {
      for (const pod of volume.pods.values()) this.#mountIfWanted(volume, pod, due);
    }
    if (this.#env.populator.hasAddedPods) {
      for (const volume of [...this.#env.actual.volumes()]) this.#releaseIfUnused(volume, due);
    }
    return due.length === 0 ? undefined : Math.min(...due);
  }

  #unmountIfUnwanted(volume: ActualVolume, pod: ActualPod, due: number[]): void {
    const { uniqueName } = volume;
    if (this.#env.desired.podOf(uniqueName, pod.podUID) !== undefined) return;
    if (!this.#env.populator.mayUnmount(pod.podUID) || this.driverMissing(volume)) return;
    void this.#start(uniqueName, pod.podUID, "volume_unmount", due, (signal) =>
      unmountVolume(this.#env.operations, volume, pod, signal),
    );
  }

  #mountIfWanted(volume: DesiredVolume, wish: DesiredPod, due: number[]): void {
    const { uniqueName, origin } = volume;
    const { uid } = wish.pod.metadata;
    if (!this.#env.migration.isDecided(origin)) return;
    const actual = this.#env.actual.get(uniqueName);
    if (actual?.attachVerified !== true) {
      if (this.#mayVerify(volume, due)) {
        void this.#start(uniqueName, undefined, "verify_controller_attached_volume", due, async (signal) => {
          const seen = this.#env.cachedNode();
          const verified = await verifyControllerAttached(this.#env.operations, volume, wish.spec, signal);
          if (verified) this.#refuted.delete(uniqueName);
          else this.#refuted.set(uniqueName, seen);
        });
      }
      return;
    }
    if (actual.pods.get(uid)?.state === "mounted" || this.driverMissing(wish)) return;
    const started = this.#start(uniqueName, undefined, "volume_mount", due, async (signal) => {
      const wait = { uniqueName, podUID: uid, giveUp: new AbortController() };
      this.#attachWaits.add(wait);
      try {
        await mountVolume(this.#env.operations, volume, wish, signal, wait.giveUp.signal);
        this.#mountErrors.get(uid)?.delete(uniqueName);
      } catch (error) {
        if (!wait.giveUp.signal.aborted) this.#mountFailed(wish, uniqueName, error);
        throw error;
      } finally {
        this.#attachWaits.delete(wait);
      }
    });
    if (started === undefined) return;
    this.#mountsInFlight.set(uid, (this.#mountsInFlight.get(uid) ?? 0) + 1);
    void started.then(() => {
      const left = (this.#mountsInFlight.get(uid) ?? 1) - 1;
      if (left === 0) this.#mountsInFlight.delete(uid);
      else this.#mountsInFlight.set(uid, left);
      this.#env.onChange();
    });
  }

  /** Spares the API server live GETs that cannot succeed yet, but never trusts the cache for long. */
  #mayVerify({ uniqueName, attachable }: DesiredVolume, due: number[]): boolean {
    if (!attachable) return true;
    if (!this.#env.reported.has(uniqueName)) return false;
    const cached = this.#env.cachedNode();
    const attached = cached?.status?.volumesAttached ?? [];
    // A cache that the live Node has already proved wrong must not send us there again at once.
    const isNews = cached !== this.#refuted.get(uniqueName);
    if (isNews && attached.some(({ name }) => name === uniqueName)) return true;
    const nowMs = this.#env.clock.monotonicMs();
    const at = this.#verifyAt.get(uniqueName) ?? nowMs + verifyAnywayMs;
    if (at <= nowMs) {
      this.#verifyAt.delete(uniqueName);
      return true;
    }
    this.#verifyAt.set(uniqueName, at);
    due.push(at - nowMs);
    return false;
  }

  #forgetVerification(uniqueName: string): void {
    this.#verifyAt.delete(uniqueName);
    this.#refuted.delete(uniqueName);
  }

  #releaseIfUnused(volume: ActualVolume, due: number[]): void {
    const { uniqueName } = volume;
    if (volume.pods.size > 0 || this.#env.desired.get(uniqueName) !== undefined) return;
    if (this.#executor.isOperationPending({ volumeName: uniqueName })) return;
    if (volume.device.state === "notMounted") {
      this.#env.actual.delete(uniqueName);
      return;
    }
    if (this.driverMissing(volume)) return;
    void this.#start(uniqueName, undefined, "unmount_device", due, (signal) =>
      unmountDevice(this.#env.operations, volume, signal),
    );
  }

  #removeLeftover(leftover: LeftoverDirectory, due: number[]): void {
    const { plugin, podUID, volumeName, path } = leftover;
    const { leftovers, actual, populator } = this.#env;
    if (leftovers.isMountedAnew(leftover, actual)) leftovers.forget(leftover);
    else if (populator.mayUnmount(podUID)) {
      void this.#start(path, podUID, "volume_unmount", due, async (signal) => {
        await (await plugin.newUnmounter(volumeName, podUID)).tearDown(signal);
        leftovers.forget(leftover);
      });
    }
  }

  /** A CSI volume whose driver has not registered waits for it, without failing again and again. */
  driverMissing({ spec }: { readonly spec: DesiredPod["spec"] }): boolean {
    const driver = spec.persistentVolume?.spec?.csi?.driver;
    return driver !== undefined && this.#env.csiDrivers?.get(driver) === undefined;
  }

  #start(
    volumeName: string,
    podName: string | undefined,
    operationName: string,
    due: number[],
    run: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> | undefined {
    const result = this.#executor.startOperation({ volumeName, podName }, operationName, run);
    if (result.kind === "backoff") due.push(result.retryInMs);
    return result.kind === "started" ? result.done : undefined;
  }

  #operationEnded({ key, operationName, error, retryInMs }: OperationEnd): void {
    if (error !== undefined) {
      const fields = { volume: key.volumeName, retryInMs, error: errorChain(error) };
      this.#env.logger.warn(`${operationName} failed`, fields);
    }
    this.#env.onOperationEnd();
  }

  #mountFailed({ pod, spec, outerNames }: DesiredPod, uniqueName: string, error: unknown): void {
    if (this.#stopped) return;
    const { uid } = pod.metadata;
    const reason = errorChain(error);
    const errors = this.#mountErrors.get(uid) ?? new Map<string, string>();
    this.#mountErrors.set(uid, errors.set(uniqueName, reason));
    const names = [...outerNames].join(", ");
    const pv = spec.persistentVolume?.metadata?.name;
    const what = pv === undefined ? `volume "${names}"` : `volume "${names}" (PersistentVolume "${pv}")`;
    const subject = involvedObject(resources.pods, pod);
    this.#env.events.event(subject, "Warning", "FailedMount", `MountVolume failed for ${what}: ${reason}`);
  }
}
