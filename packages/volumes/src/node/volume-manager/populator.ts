/**
 * Keeps the desired state equal to what the pods of this node need.
 * Source: docs/behaviour/node-agent.md 4.1.
 *
 * Invariants
 *  - A pod that could not be resolved completely is undecided: nothing of it is unmounted meanwhile.
 *  - A pod's volumes stay desired until the pod is gone or ended and the runtime has no container of it.
 */

import { isDeleting, type KubeClient, type Pod, type Stored } from "@longshore/kube";
import { backoffMs, errorChain, type RuntimeEnv } from "@longshore/runtime";
import { uniqueVolumeName } from "../../framework/names.ts";
import type { VolumePluginManager } from "../../framework/plugin-manager.ts";
import type { ContainerRuntime } from "../../framework/ports.ts";
import type { NodeMigration } from "../migration/node-migration.ts";
import type { ActualState } from "./actual-state.ts";
import type { DesiredState, ResolvedVolume } from "./desired-state.ts";
import { PodVolumeError, podVolumeSpec, usedPluginVolumes } from "./pod-volumes.ts";

/** What the populator works with. */
export interface PopulatorEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly runtime: ContainerRuntime;
  readonly plugins: VolumePluginManager;
  readonly migration: NodeMigration;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  /** Pods of directories found on disk that do not identify their volume. */
  leftoverPods(): readonly string[];
}

interface PodState {
  pod: Stored<Pod>;
  /** All volumes are in the desired state. */
  resolved: boolean;
  failures: number;
  /** Monotonic time before which it is not tried again. */
  retryAtMs: number;
  errors: readonly string[];
}

const podBackoff = { initialMs: 300, maximumMs: 20_000 };
/** How often the runtime is asked again about an ended pod whose containers have not gone. */
const runtimeRecheckMs = 300;
const parallelPods = 8;

/** Fills and empties the desired state. */
export class Populator {
  readonly #env: PopulatorEnv;
  readonly #pods = new Map<string, PodState>();
  /** Pods that are gone or ended, and of which the runtime has no container. */
  readonly #over = new Set<string>();
  #sourcesReady = false;
  #passedOnce = false;

  constructor(env: PopulatorEnv) {
    this.#env = env;
  }

  /** True after the first pass that knew all pods and the migration decision. */
  get hasAddedPods(): boolean {
    return this.#passedOnce;
  }

  /** Every pod bound to this node. */
  setPods(pods: readonly Stored<Pod>[]): void {
    this.#sourcesReady = true;
    const uids = new Set<string>();
    for (const pod of pods) {
      const { uid } = pod.metadata;
      uids.add(uid);
      if (!hasEnded(pod)) this.#over.delete(uid);
      const known = this.#pods.get(uid);
      if (known !== undefined) known.pod = pod;
      else this.#pods.set(uid, { pod, resolved: false, failures: 0, retryAtMs: 0, errors: [] });
    }
    for (const uid of [...this.#pods.keys()]) if (!uids.has(uid)) this.#pods.delete(uid);
  }

  /** Reads claims and volumes of the pod again at the next pass, at once. */
  reprocess(podUID: string): void {
    const state = this.#pods.get(podUID);
    if (state === undefined) return;
    state.resolved = false;
    state.retryAtMs = 0;
    state.errors = [];
  }

  /** Every pod is to be resolved again: a plugin changed over. */
  reprocessAll(): void {
    for (const uid of this.#pods.keys()) this.reprocess(uid);
  }

  isKnown(podUID: string): boolean {
    return this.#pods.has(podUID);
  }

  /** The pod is bound here and may (still) start containers. */
  mayStart(podUID: string): boolean {
    const state = this.#pods.get(podUID);
    return state !== undefined && !hasEnded(state.pod);
  }

  /** Pods that are gone or ended, and of which the runtime has no container. */
  get over(): ReadonlySet<string> {
    return this.#over;
  }

  /** Gone or ended, and no container of it is left. */
  isOver(podUID: string): boolean {
    return this.#over.has(podUID);
  }

  isResolved(podUID: string): boolean {
    return this.#pods.get(podUID)?.resolved ?? false;
  }

  /**
   * Whether what is mounted for the pod and not desired may be unmounted. Not while the pod may want
   * volumes that could not be resolved, or may have a container that uses them.
   */
  mayUnmount(podUID: string): boolean {
    return this.#over.has(podUID) || this.isResolved(podUID);
  }

  /** Why the pod's volumes could not be resolved at the last try. */
  errorsOf(podUID: string): readonly string[] {
    return this.#pods.get(podUID)?.errors ?? [];
  }

  /** One pass. @returns milliseconds until the next one is due, or undefined: when something changes */
  async pass(signal: AbortSignal): Promise<number | undefined> {
    const { clock, migration } = this.#env;
    if (!this.#sourcesReady || !migration.initialised) return undefined;
    const recheck = await this.#removeEnded(signal);
    const nowMs = clock.monotonicMs();
    const due = this.#unresolved().filter((state) => state.retryAtMs <= nowMs);
    for (let at = 0; at < due.length; at += parallelPods) {
      await Promise.all(due.slice(at, at + parallelPods).map((state) => this.#resolve(state, signal)));
    }
    this.#passedOnce = true;
    const waits = this.#unresolved().map((state) => Math.max(0, state.retryAtMs - clock.monotonicMs()));
    if (recheck) waits.push(runtimeRecheckMs);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  #unresolved(): PodState[] {
    return [...this.#pods.values()].filter(
      (state) => !state.resolved && !this.#over.has(state.pod.metadata.uid),
    );
  }

  async #resolve(state: PodState, signal: AbortSignal): Promise<void> {
    const { pod } = state;
    const resolved: ResolvedVolume[] = [];
    const errors: string[] = [];
    for (const volume of usedPluginVolumes(pod)) {
      try {
        resolved.push(await this.#resolveVolume(pod, volume, signal));
      } catch (error) {
        signal.throwIfAborted();
        errors.push(`volume ${volume.name}: ${errorChain(error)}`);
      }
    }
    // Something changed while claims were read: the pod is gone, or a plugin is changing over.
    if (this.#pods.get(pod.metadata.uid) !== state || this.#over.has(pod.metadata.uid)) return;
    for (const volume of mergedByName(resolved)) {
      if (this.#isOnPathInForce(volume)) this.#env.desired.add({ ...volume, pod: state.pod });
      else errors.push(`volume ${[...volume.outerNames].join(", ")}: ${volume.origin} is changing over`);
    }
    state.errors = errors;
    state.resolved = errors.length === 0;
    state.failures = errors.length === 0 ? 0 : state.failures + 1;
    if (errors.length > 0) {
      state.retryAtMs = this.#env.clock.monotonicMs() + backoffMs(podBackoff, state.failures);
    }
  }

  async #resolveVolume(
    pod: Stored<Pod>,
    volume: Parameters<typeof podVolumeSpec>[2],
    signal: AbortSignal,
  ): Promise<ResolvedVolume> {
    const { plugins, migration, kube } = this.#env;
    const { spec, origin } = await podVolumeSpec({ kube, migration: migration.manager }, pod, volume, signal);
    const plugin = plugins.findPluginBySpec(spec);
    const attachable = (await plugins.findAttachablePluginBySpec(spec)) !== undefined;
    const deviceMountable = (await plugins.findDeviceMountablePluginBySpec(spec)) !== undefined;
    if (!attachable && !deviceMountable) {
      throw new PodVolumeError("ephemeral CSI volumes are not supported: use a claim");
    }
    const uniqueName = uniqueVolumeName(plugin, spec, pod.metadata.uid);
    const outerNames = new Set([volume.name]);
    return { uniqueName, plugin, attachable, deviceMountable, origin, pod, spec, outerNames };
  }

  /** Whether the volume is resolved as its plugin's path demands right now. */
  #isOnPathInForce({ origin, plugin }: ResolvedVolume): boolean {
    if (origin === undefined) return true;
    const { migration } = this.#env;
    const onCsi = plugin.pluginName !== origin;
    return migration.isDecided(origin) && migration.manager.isMigrationEnabledForPlugin(origin) === onCsi;
  }

  /** Removes the entries of ended pods. @returns whether the runtime has to be asked again later */
  async #removeEnded(signal: AbortSignal): Promise<boolean> {
    const { desired, actual, runtime, leftoverPods } = this.#env;
    const isEnded = (uid: string): boolean => {
      const state = this.#pods.get(uid);
      return state === undefined || hasEnded(state.pod);
    };
    const concerned = new Set([
      ...desired.podUIDs(),
      ...actual.podUIDs(),
      ...leftoverPods(),
      ...this.#pods.keys(),
    ]);
    for (const uid of [...this.#over]) if (!concerned.has(uid)) this.#over.delete(uid);
    const ended = [...concerned].filter((uid) => isEnded(uid) && !this.#over.has(uid));
    if (ended.length === 0) return false;
    const running = await runtime.podsWithRunningContainers(signal);
    let recheck = false;
    for (const uid of ended) {
      if (!isEnded(uid)) continue;
      if (running.has(uid)) {
        recheck = true;
        continue;
      }
      this.#over.add(uid);
      for (const { uniqueName } of desired.volumesOf(uid)) desired.delete(uniqueName, uid);
    }
    return recheck;
  }
}

/** The pod will not start containers (again). Whether any still run, the runtime knows. */
export function hasEnded(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === "Failed" || phase === "Succeeded" || isDeleting(pod);
}

/** A pod may use one volume under several names: they become one entry. */
function mergedByName(volumes: readonly ResolvedVolume[]): readonly ResolvedVolume[] {
  const merged = new Map<string, ResolvedVolume>();
  for (const volume of volumes) {
    const earlier = merged.get(volume.uniqueName);
    const outerNames = new Set([...(earlier?.outerNames ?? []), ...volume.outerNames]);
    merged.set(volume.uniqueName, { ...(earlier ?? volume), outerNames });
  }
  return [...merged.values()];
}
