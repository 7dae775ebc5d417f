/**
 * The volume manager: brings what is mounted on this node to what its pods need, and back.
 *
 *   pods ──populator──▶ desired state ─┐
 *                                      ├─ reconcile pass ──▶ operations ──▶ actual state
 *   disk ──reconstruct (once)──────────┘         ▲──────────────┘
 *
 * Passes are run when something changed or a retry is due, never on a fixed beat.
 * Source: docs/behaviour/node-agent.md 3-9.
 *
 * Invariants
 *  - Nothing is mounted before the controller has confirmed the attachment and the posted
 *    `volumesInUse` names the volume.
 *  - Nothing is unmounted for a pod that may still use it, or about which too little is known.
 *  - A volume leaves `volumesInUse` only after it is certainly unmounted.
 */
import type { EventRecorder, KubeClient, Node, Pod, Stored } from "@longshore/kube";
import {
  backoffMs,
  DeadlineError,
  errorChain,
  type Host,
  periodically,
  type RuntimeEnv,
  TaskGroup,
  withDeadline,
} from "@longshore/runtime";
import type { VolumePluginManager } from "../../framework/plugin-manager.ts";
import type { ContainerRuntime } from "../../framework/ports.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { VolumePath } from "../migration/migration-step.ts";
import type { NodeMigration, VolumesInHand } from "../migration/node-migration.ts";
import { Wakeup } from "../wakeup.ts";
import { ActualState } from "./actual-state.ts";
import { DesiredState } from "./desired-state.ts";
import { Leftovers } from "./leftovers.ts";
import type { OperationEnv } from "./mount-operations.ts";
import { usedPluginVolumes } from "./pod-volumes.ts";
import { Populator } from "./populator.ts";
import { Reconciler } from "./reconciler.ts";
import { ReportedInUse } from "./reported-in-use.ts";

/** How long a pod waits for its volumes, in milliseconds. */
export const mountTimeoutMs = 123_000;
const loopBackoff = { initialMs: 200, maximumMs: 10_000 };

/** What the volume manager works with. */
export interface VolumeManagerEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly runtime: ContainerRuntime;
  readonly plugins: VolumePluginManager;
  readonly migration: NodeMigration;
  readonly events: EventRecorder;
  /** Undefined where there is no CSI plugin. */
  readonly csiDrivers: RegisteredCsiDrivers | undefined;
  /** This node as last seen, from a cache; a hint only. */
  readonly cachedNode: () => Node | undefined;
}

/** Not all volumes of a pod were mounted in time. */
export class MountTimeoutError extends Error {
  override readonly name = "MountTimeoutError";
}

/** Volumes of a pod cannot be resolved; the message says which and why. */
export class PodVolumesError extends Error {
  override readonly name = "PodVolumesError";
}

/** Runs the volumes of one node. */
export class VolumeManager implements VolumesInHand {
  readonly #env: VolumeManagerEnv;
  readonly #operations: OperationEnv;
  readonly #desired = new DesiredState();
  readonly #actual = new ActualState();
  readonly #populator: Populator;
  readonly #reconciler: Reconciler;
  readonly #reported = new ReportedInUse();
  readonly #wakePopulator = new Wakeup();
  readonly #wakeReconciler = new Wakeup();
  readonly #tasks: TaskGroup;
  readonly #onChange: () => void;
  readonly #waiters = new Set<() => void>();
  readonly #leftovers = new Leftovers();
  #restored = false;
  #lastFingerprint = "";

  constructor(
    env: VolumeManagerEnv,
    options: { readonly nodeName: string; readonly rootDir: string; readonly onChange: () => void },
  ) {
    this.#env = env;
    this.#onChange = options.onChange;
    const actual = this.#actual;
    this.#operations = { ...env, ...options, actual, isReportedInUse: (name) => this.#reported.has(name) };
    const leftoverPods = () => this.#leftovers.directories.map(({ podUID }) => podUID);
    this.#populator = new Populator({ ...env, desired: this.#desired, actual, leftoverPods });
    this.#reconciler = new Reconciler({
      ...env,
      desired: this.#desired,
      actual,
      populator: this.#populator,
      leftovers: this.#leftovers,
      reported: this.#reported,
      operations: this.#operations,
      onChange: () => this.#changed(),
      onOperationEnd: () => this.#wakeReconciler.wake(),
    });
    this.#tasks = new TaskGroup((error) => env.logger.error("volume manager task ended", { error }));
  }

  /** Starts the loops. */
  start(): void {
    const { clock, csiDrivers } = this.#env;
    let populateInMs: number | undefined;
    this.#tasks.spawn((signal) =>
      periodically(
        this.#env,
        { name: "volume populator", periodMs: 0, backoff: loopBackoff },
        signal,
        async () => {
          await this.#wakePopulator.wait(clock, populateInMs, signal);
          // Should the pass fail, it is due again at once after the back-off.
          populateInMs = 0;
          populateInMs = await this.#populator.pass(signal);
          this.#wakeReconciler.wake();
        },
      ),
    );
    let reconcileInMs: number | undefined;
    this.#tasks.spawn(async (signal) => {
      await this.#restore(signal);
      await periodically(
        this.#env,
        { name: "volume reconciler", periodMs: 0, backoff: loopBackoff },
        signal,
        async () => {
          await this.#wakeReconciler.wait(clock, reconcileInMs, signal);
          reconcileInMs = 0;
          reconcileInMs = this.#reconciler.pass();
          this.#changed();
        },
      );
    });
    const unsubscribe = csiDrivers?.onChange(() => this.wake());
    if (unsubscribe !== undefined) {
      this.#tasks.signal.addEventListener("abort", unsubscribe, { once: true });
    }
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    await this.#reconciler.stop();
  }

  setPods(pods: readonly Stored<Pod>[]): void {
    this.#populator.setPods(pods);
    this.#wakePopulator.wake();
    this.#wakeReconciler.wake();
  }

  /** Something outside changed (the Node, a driver): look again. */
  wake(): void {
    this.#wakeReconciler.wake();
  }

  /** `status.volumesInUse`, or undefined while the previous list has to stand. */
  volumesInUse(): readonly string[] | undefined {
    if (!this.#restored || !this.#populator.hasAddedPods) return undefined;
    const names = this.#namesInUse();
    this.#reported.handOut(names);
    return names;
  }

  #namesInUse(): readonly string[] {
    const names = new Set(this.#leftovers.namesInUse);
    for (const volume of this.#desired.volumes()) if (volume.attachable) names.add(volume.uniqueName);
    for (const volume of this.#actual.volumes()) if (volume.attachable) names.add(volume.uniqueName);
    return [...names].sort();
  }

  markReportedInUse(names: readonly string[]): void {
    if (this.#reported.posted(names)) this.#wakeReconciler.wake();
  }

  mountedVolumes(podUID: string): ReadonlyMap<string, { readonly path: string; readonly readOnly: boolean }> {
    const mounted = new Map<string, { readonly path: string; readonly readOnly: boolean }>();
    // From the moment a pod is known to end, no container of it may start. A caller that read the mounts
    // before that counts in the runtime, which is asked after it.
    if (!this.#populator.mayStart(podUID)) return mounted;
    for (const volume of this.#desired.volumesOf(podUID)) {
      const actual = this.#actual.podOf(volume.uniqueName, podUID);
      if (actual?.state !== "mounted") continue;
      const { path, readOnly } = actual;
      for (const name of volume.pods.get(podUID)?.outerNames ?? []) mounted.set(name, { path, readOnly });
    }
    return mounted;
  }

  podVolumesGone(podUID: string): boolean {
    const { hasAddedPods } = this.#populator;
    if (!this.#restored || !hasAddedPods) return false;
    if (this.#populator.isKnown(podUID) && !this.#populator.isOver(podUID)) return false;
    return (
      this.#desired.volumesOf(podUID).length === 0 &&
      !this.#actual.hasPod(podUID) &&
      !this.#reconciler.podsWithMountInFlight().has(podUID) &&
      this.#leftovers.directories.every((leftover) => leftover.podUID !== podUID)
    );
  }

  async waitForAttachAndMount(pod: Stored<Pod>, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    const expected = usedPluginVolumes(pod).map(({ name }) => name);
    if (expected.length === 0) return;
    const missing = () => {
      const mounted = this.mountedVolumes(uid);
      return expected.filter((name) => !mounted.has(name));
    };
    this.#populator.reprocess(uid);
    this.#wakePopulator.wake();
    try {
      await withDeadline(this.#env.clock, mountTimeoutMs, signal, async (waitSignal) => {
        while (!this.#populator.isResolved(uid) || missing().length > 0) {
          const errors = this.#populator.errorsOf(uid);
          if (errors.length > 0) throw new PodVolumesError(errors.join("; "));
          await this.#nextChange(waitSignal);
        }
      });
    } catch (error) {
      if (!(error instanceof DeadlineError) || signal.aborted) throw error;
      if (missing().length === 0) return;
      throw new MountTimeoutError(this.#timeoutMessage(uid, missing()), { cause: error });
    }
  }

  // VolumesInHand

  nothingMounted(path: VolumePath, plugin: { readonly inTreeName: string }): boolean {
    for (const volume of this.#actual.volumes()) {
      if (volume.origin === plugin.inTreeName) return false;
      if (path === "in-tree" && volume.plugin.pluginName === plugin.inTreeName) return false;
    }
    for (const { uniqueName, origin } of this.#desired.volumes()) {
      if (origin === plugin.inTreeName && this.#reconciler.isOperationPending(uniqueName)) return false;
    }
    const pluginName = path === "csi" ? csiPluginName : plugin.inTreeName;
    return (
      this.#restored &&
      this.#leftovers.directories.every((leftover) => leftover.plugin.pluginName !== pluginName)
    );
  }

  namesOf(inTreeName: string): readonly string[] {
    return [...this.#desired.volumes(), ...this.#actual.volumes()]
      .filter(({ origin }) => origin === inTreeName)
      .map(({ uniqueName }) => uniqueName);
  }

  redecide(): void {
    const { manager } = this.#env.migration;
    for (const { uniqueName, origin, plugin } of [...this.#desired.volumes()]) {
      if (origin === undefined || this.#actual.get(uniqueName) !== undefined) continue;
      const onCsi = plugin.pluginName !== origin;
      if (manager.isMigrationEnabledForPlugin(origin) !== onCsi) this.#desired.deleteVolume(uniqueName);
    }
    this.#populator.reprocessAll();
    this.#wakePopulator.wake();
    this.#wakeReconciler.wake();
  }

  /** Reads back from disk what an earlier agent left; nothing else happens before. */
  async #restore(signal: AbortSignal): Promise<void> {
    const { host, logger, plugins, kube, clock } = this.#env;
    const { rootDir, nodeName } = this.#operations;
    const env = { host, logger, rootDir, plugins, actual: this.#actual, kube, nodeName };
    for (let attempt = 1; !this.#restored; attempt++) {
      try {
        await this.#leftovers.restore(env, signal);
        this.#restored = true;
      } catch (error) {
        signal.throwIfAborted();
        logger.warn("reading back what is mounted failed", { error: errorChain(error) });
        await clock.sleep(backoffMs(loopBackoff, attempt), signal);
      }
    }
    this.#wakePopulator.wake();
    this.#changed();
  }

  // Change notification

  /** Wakes everyone who waits for a change of state. */
  #changed(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const resolve of waiters) resolve();
    const fingerprint = this.#fingerprint();
    if (fingerprint === this.#lastFingerprint) return;
    this.#lastFingerprint = fingerprint;
    this.#env.migration.volumesChanged();
    this.#onChange();
  }

  /** Equal as long as nothing changed that the shell or the migration could care about. */
  #fingerprint(): string {
    const mounts = [...this.#actual.volumes()].map(({ uniqueName, device, pods }) => [
      uniqueName,
      device.state,
      ...[...pods.values()].map(({ podUID, state }) => `${podUID} ${state}`),
    ]);
    const wishes = [...this.#desired.volumes()].map(({ uniqueName, pods }) => [uniqueName, ...pods.keys()]);
    const others = [this.#restored, this.#populator.hasAddedPods, this.#leftovers.directories.length];
    const over = [...this.#reconciler.podsWithMountInFlight(), "over", ...this.#populator.over];
    return JSON.stringify([others, mounts, wishes, over]);
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(onChange);
        reject(signal.reason);
      };
      const onChange = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(onChange);
    });
  }

  #timeoutMessage(podUID: string, unmounted: readonly string[]): string {
    const reasons: string[] = [];
    const unattached: string[] = [];
    for (const volume of this.#desired.volumesOf(podUID)) {
      const wish = volume.pods.get(podUID);
      const names = [...(wish?.outerNames ?? [])];
      const actual = this.#actual.get(volume.uniqueName);
      if (actual?.pods.get(podUID)?.state === "mounted") continue;
      if (actual?.attachVerified !== true) unattached.push(...names);
      else if (wish !== undefined && this.#reconciler.driverMissing(wish)) {
        reasons.push(
          `CSI driver ${wish.spec.persistentVolume?.spec?.csi?.driver} is not registered on this node`,
        );
      }
    }
    reasons.push(...this.#reconciler.mountErrorsOf(podUID));
    const why = reasons.length === 0 ? "" : `: ${reasons.join("; ")}`;
    return `timed out waiting for volumes: unmounted volumes=[${unmounted.join(" ")}], unattached volumes=[${unattached.join(" ")}]${why}`;
  }
}
