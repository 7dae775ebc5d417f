/**
 * The volume manager: brings what is mounted on this node to what its pods need, and back.
 *
 *   pods ──populator──▶ desired state ─┐
 *                                      ├─ reconcile pass ──▶ operations ──▶ actual state
 *   disk ──reconstruct (once)──────────┘         ▲──────────────┘
 *
 * Passes are run when something changed or a retry is due, never on a fixed beat.
 * Source: spec node-agent.md §3-9.
 *
 * Invariants
 *  - Nothing is mounted before the controller has confirmed the attachment and the posted
 *    `volumesInUse` names the volume.
 *  - Nothing is unmounted for a pod that may still use it, or about which too little is known.
 *  - A volume leaves `volumesInUse` only after it is certainly unmounted.
 */
import {
  type EventRecorder,
  involvedObject,
  type KubeClient,
  type Node,
  type Pod,
  resources,
  type Stored,
} from "@longshore/kube";
import {
  DeadlineError,
  errorChain,
  type Host,
  periodically,
  type RuntimeEnv,
  StoppedError,
  TaskGroup,
  withDeadline,
} from "@longshore/runtime";
import {
  createOperationExecutor,
  type OperationEnd,
  type OperationExecutor,
} from "../../framework/operations.ts";
import type { VolumePluginManager } from "../../framework/plugin-manager.ts";
import type { ContainerRuntime } from "../../framework/ports.ts";
import { csiPluginName } from "../../plugins/csi/csi-names.ts";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { VolumePath } from "../migration/migration-step.ts";
import type { NodeMigration, VolumesInHand } from "../migration/node-migration.ts";
import { type ActualPod, ActualState, type ActualVolume } from "./actual-state.ts";
import { type DesiredPod, DesiredState, type DesiredVolume } from "./desired-state.ts";
import {
  mountVolume,
  type OperationEnv,
  unmountDevice,
  unmountVolume,
  verifyControllerAttached,
} from "./mount-operations.ts";
import { usedPluginVolumes } from "./pod-volumes.ts";
import { Populator } from "./populator.ts";
import { type LeftoverDirectory, reconstructVolumes } from "./reconstruct.ts";
import { ReportedInUse } from "./reported-in-use.ts";
import { Wakeup } from "./wakeup.ts";

/** How long a pod waits for its volumes, in milliseconds. */
export const mountTimeoutMs = 123_000;
/** An attachment is looked for in the live Node this often, whatever the cached one says. */
const verifyAnywayMs = 5_000;

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
  readonly #executor: OperationExecutor;
  readonly #reported = new ReportedInUse();
  readonly #populate = new Wakeup();
  readonly #reconcile = new Wakeup();
  readonly #tasks: TaskGroup;
  readonly #onChange: () => void;
  readonly #waiters = new Set<() => void>();
  /** Mounts that run or will be tried again, by pod: reasons why they have not succeeded. */
  readonly #mountErrors = new Map<string, Map<string, string>>();
  readonly #mountsInFlight = new Map<string, number>();
  readonly #verifyAt = new Map<string, number>();
  /** Mounts in flight that wait for a device or attachment: to be given up when the pod goes. */
  readonly #attachWaits = new Set<{ uniqueName: string; podUID: string; giveUp: AbortController }>();
  #leftovers: readonly LeftoverDirectory[] = [];
  /** Names kept in `volumesInUse` for directories that could not be understood. */
  #carriedOver: readonly string[] = [];
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
    const leftoverPods = () => this.#leftovers.map(({ podUID }) => podUID);
    this.#populator = new Populator({ ...env, desired: this.#desired, actual, leftoverPods });
    this.#executor = createOperationExecutor(env, { onEnd: (end) => this.#operationEnded(end) });
    this.#tasks = new TaskGroup((error) => env.logger.error("volume manager task ended", { error }));
  }

  /** Starts the loops. */
  start(): void {
    const { clock, csiDrivers } = this.#env;
    const backoff = { initialMs: 200, maximumMs: 10_000 };
    let populateInMs: number | undefined;
    this.#tasks.spawn((signal) =>
      periodically(this.#env, { name: "volume populator", periodMs: 0, backoff }, signal, async () => {
        await this.#populate.wait(clock, populateInMs, signal);
        // Should the pass fail, it is due again at once after the back-off.
        populateInMs = 0;
        populateInMs = await this.#populator.pass(signal);
        this.#reconcile.wake();
      }),
    );
    let reconcileInMs: number | undefined;
    this.#tasks.spawn(async (signal) => {
      await this.#restore(signal);
      await periodically(this.#env, { name: "volume reconciler", periodMs: 0, backoff }, signal, async () => {
        await this.#reconcile.wait(clock, reconcileInMs, signal);
        reconcileInMs = 0;
        reconcileInMs = this.#pass();
      });
    });
    const unsubscribe = csiDrivers?.onChange(() => this.wake());
    if (unsubscribe !== undefined) {
      this.#tasks.signal.addEventListener("abort", unsubscribe, { once: true });
    }
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    await this.#executor.stop();
  }

  setPods(pods: readonly Stored<Pod>[]): void {
    this.#populator.setPods(pods);
    this.#populate.wake();
    this.#reconcile.wake();
  }

  /** Something outside changed (the Node, a driver): look again. */
  wake(): void {
    this.#reconcile.wake();
  }

  /** `status.volumesInUse`, or undefined while the previous list has to stand. */
  volumesInUse(): readonly string[] | undefined {
    if (!this.#restored || !this.#populator.hasAddedPods) return undefined;
    const names = this.#namesInUse();
    this.#reported.handOut(names);
    return names;
  }

  #namesInUse(): readonly string[] {
    const names = new Set(this.#carriedOver);
    for (const volume of this.#desired.volumes()) if (volume.attachable) names.add(volume.uniqueName);
    for (const volume of this.#actual.volumes()) if (volume.attachable) names.add(volume.uniqueName);
    return [...names].sort();
  }

  markReportedInUse(names: readonly string[]): void {
    if (this.#reported.posted(names)) this.#reconcile.wake();
  }

  mountedVolumes(podUID: string): ReadonlyMap<string, { readonly path: string; readonly readOnly: boolean }> {
    const mounted = new Map<string, { readonly path: string; readonly readOnly: boolean }>();
    // From the moment a pod is known to end, no container of it may start: whoever read the mounts
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
      !this.#mountsInFlight.has(podUID) &&
      this.#leftovers.every((leftover) => leftover.podUID !== podUID)
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
    this.#populate.wake();
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
      const key = { volumeName: uniqueName };
      if (origin === plugin.inTreeName && this.#executor.isOperationPending(key)) return false;
    }
    const pluginName = path === "csi" ? csiPluginName : plugin.inTreeName;
    return this.#restored && this.#leftovers.every((leftover) => leftover.plugin.pluginName !== pluginName);
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
    this.#populate.wake();
    this.#reconcile.wake();
  }

  // Reconstruction

  /** Reads back from disk what an earlier agent left; nothing else happens before. */
  async #restore(signal: AbortSignal): Promise<void> {
    const { host, logger, plugins } = this.#env;
    const { rootDir } = this.#operations;
    const once = {
      name: "volume reconstruction",
      periodMs: 0,
      backoff: { initialMs: 200, maximumMs: 10_000 },
    };
    const done = new AbortController();
    const stop = () => done.abort();
    signal.addEventListener("abort", stop, { once: true });
    await periodically(this.#env, once, done.signal, async () => {
      this.#leftovers = await reconstructVolumes({ host, logger, rootDir, plugins, actual: this.#actual });
      this.#carriedOver = await this.#namesOfLeftovers(signal);
      stop();
    });
    signal.removeEventListener("abort", stop);
    signal.throwIfAborted();
    this.#restored = true;
    this.#populate.wake();
    this.#changed();
  }

  /** Unknown is never detached: what the last list named of a plugin with unreadable mounts stays in it. */
  async #namesOfLeftovers(signal: AbortSignal): Promise<readonly string[]> {
    const plugins = new Set<string>();
    for (const { plugin, path } of this.#leftovers) {
      if ((await this.#env.host.listMounts(path)).length > 0) plugins.add(plugin.pluginName);
    }
    if (plugins.size === 0) return [];
    const name = this.#operations.nodeName;
    const node = await this.#env.kube.get(resources.nodes, { name }, { signal });
    return (node?.status?.volumesInUse ?? []).filter((volume) =>
      [...plugins].some((plugin) => volume.startsWith(`${plugin}/`)),
    );
  }

  // Reconciling

  /** One pass over all volumes. @returns milliseconds until the next one is due, or undefined */
  #pass(): number | undefined {
    const due: number[] = [];
    for (const { uniqueName, podUID, giveUp } of this.#attachWaits) {
      if (this.#desired.podOf(uniqueName, podUID) === undefined) giveUp.abort(new StoppedError());
    }
    for (const volume of this.#actual.volumes()) {
      for (const pod of volume.pods.values()) this.#unmountIfUnwanted(volume, pod, due);
    }
    for (const leftover of this.#leftovers) this.#removeLeftover(leftover, due);
    for (const volume of this.#desired.volumes()) {
      for (const pod of volume.pods.values()) this.#mountIfWanted(volume, pod, due);
    }
    if (this.#populator.hasAddedPods) {
      for (const volume of [...this.#actual.volumes()]) this.#releaseIfUnused(volume, due);
    }
    this.#changed();
    return due.length === 0 ? undefined : Math.min(...due);
  }

  #unmountIfUnwanted(volume: ActualVolume, pod: ActualPod, due: number[]): void {
    const { uniqueName } = volume;
    if (this.#desired.podOf(uniqueName, pod.podUID) !== undefined) return;
    if (!this.#populator.mayUnmount(pod.podUID) || this.#driverMissing(volume)) return;
    void this.#start(uniqueName, pod.podUID, "volume_unmount", due, (signal) =>
      unmountVolume(this.#operations, volume, pod, signal),
    );
  }

  #mountIfWanted(volume: DesiredVolume, wish: DesiredPod, due: number[]): void {
    const { uniqueName, origin } = volume;
    const { uid } = wish.pod.metadata;
    if (!this.#env.migration.isDecided(origin)) return;
    const actual = this.#actual.get(uniqueName);
    if (actual?.attachVerified !== true) {
      if (this.#mayVerify(volume, due)) {
        void this.#start(uniqueName, undefined, "verify_controller_attached_volume", due, async (signal) => {
          await verifyControllerAttached(this.#operations, volume, wish.spec, signal);
        });
      }
      return;
    }
    if (actual.pods.get(uid)?.state === "mounted" || this.#driverMissing(wish)) return;
    const started = this.#start(uniqueName, undefined, "volume_mount", due, async (signal) => {
      const wait = { uniqueName, podUID: uid, giveUp: new AbortController() };
      this.#attachWaits.add(wait);
      try {
        await mountVolume(this.#operations, volume, wish, signal, wait.giveUp.signal);
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
      this.#changed();
    });
  }

  /** Spares the API server live GETs that cannot succeed yet, but never trusts the cache for long. */
  #mayVerify({ uniqueName, attachable }: DesiredVolume, due: number[]): boolean {
    if (!attachable) return true;
    if (!this.#reported.has(uniqueName)) return false;
    const attached = this.#env.cachedNode()?.status?.volumesAttached ?? [];
    if (attached.some(({ name }) => name === uniqueName)) return true;
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

  #releaseIfUnused(volume: ActualVolume, due: number[]): void {
    const { uniqueName } = volume;
    if (volume.pods.size > 0 || this.#desired.get(uniqueName) !== undefined) return;
    if (this.#executor.isOperationPending({ volumeName: uniqueName })) return;
    if (volume.device.state === "notMounted") {
      this.#actual.delete(uniqueName);
      this.#verifyAt.delete(uniqueName);
      return;
    }
    if (this.#driverMissing(volume)) return;
    void this.#start(uniqueName, undefined, "unmount_device", due, (signal) =>
      unmountDevice(this.#operations, volume, signal),
    );
  }

  #removeLeftover(leftover: LeftoverDirectory, due: number[]): void {
    const { plugin, podUID, volumeName, path } = leftover;
    const forget = () => {
      this.#leftovers = this.#leftovers.filter((other) => other !== leftover);
      if (this.#leftovers.length === 0) this.#carriedOver = [];
    };
    const isMountedAnew = [...this.#actual.volumes()].some(({ pods }) => {
      const mount = pods.get(podUID);
      return mount?.state === "mounted" && (mount.path === path || mount.path.startsWith(`${path}/`));
    });
    if (isMountedAnew) forget();
    else if (this.#populator.mayUnmount(podUID)) {
      void this.#start(path, podUID, "volume_unmount", due, async (signal) => {
        await (await plugin.newUnmounter(volumeName, podUID)).tearDown(signal);
        forget();
      });
    }
  }

  /** A CSI volume whose driver has not registered waits for it, without failing again and again. */
  #driverMissing({ spec }: { readonly spec: DesiredPod["spec"] }): boolean {
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
    this.#reconcile.wake();
  }

  #mountFailed({ pod, spec, outerNames }: DesiredPod, uniqueName: string, error: unknown): void {
    if (this.#tasks.signal.aborted) return;
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

  // Change notification

  /** Tells everyone who waits for a change of state. */
  #changed(): void {
    for (const uid of [...this.#mountErrors.keys()]) {
      if (!this.#populator.isKnown(uid)) this.#mountErrors.delete(uid);
    }
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
    const others = [this.#restored, this.#populator.hasAddedPods, this.#leftovers.length];
    const over = [...this.#mountsInFlight.keys(), "over", ...this.#populator.over];
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
      else if (wish !== undefined && this.#driverMissing(wish)) {
        reasons.push(
          `CSI driver ${wish.spec.persistentVolume?.spec?.csi?.driver} is not registered on this node`,
        );
      }
    }
    reasons.push(...(this.#mountErrors.get(podUID)?.values() ?? []));
    const why = reasons.length === 0 ? "" : `: ${reasons.join("; ")}`;
    return `timed out waiting for volumes: unmounted volumes=[${unmounted.join(" ")}], unattached volumes=[${unattached.join(" ")}]${why}`;
  }
}
