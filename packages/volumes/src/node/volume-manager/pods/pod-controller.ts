/**
 * Keeps the desired state equal to what the pods of this node need. Key: pod UID.
 * Source: docs/behaviour/node-agent.md 4.1.
 */
import {
  type Actions,
  type Controller,
  type KubeClient,
  type Next,
  observeAgain,
  type Pass,
  type Pod,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import { backoffMs, type Component, type Host, type RuntimeEnv } from "@longshore/runtime";
import type { ContainerRuntime } from "../../../framework/ports.ts";
import type { VolumePluginManager } from "../../../framework/volume-plugin-manager.ts";
import type { ActualState } from "../actual-state.ts";
import type { DesiredState, ResolvedVolume } from "../desired-state.ts";
import type { VolumePaths } from "../volume-paths.ts";
import { decidePodStep, type ObservedPod, type PodResolution, type PodStep } from "./decide-pod-step.ts";
import { FirstPass } from "./first-pass.ts";
import type { NodePods } from "./node-pods.ts";
import { removePodDirectories } from "./remove-pod-directories.ts";
import { resolvePod } from "./resolve-pod.ts";
import { RunningPods } from "./running-pods.ts";

const podBackoff = { initialMs: 300, maximumMs: 20_000 };
const workers = 8;

/** What it works with. */
export interface PodControllerEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly runtime: ContainerRuntime;
  readonly host: Host;
  /** The kubelet root directory. */
  readonly rootDir: string;
  readonly plugins: VolumePluginManager;
  readonly paths: VolumePaths;
  readonly pods: NodePods;
  readonly desired: DesiredState;
  readonly actual: ActualState;
  /** Pods that have directories whose volume is not known. */
  readonly leftovers: { hasPod(podUID: string): boolean; podUIDs(): readonly string[] };
  /** Mounts that run: each may still mount something for its pod. */
  readonly mounts: { hasPod(podUID: string): boolean };
  /** It is decided (again) what the pod wants, or that nothing of it is wanted any more. */
  readonly onDecided: (podUID: string) => void;
  /** Every pod that was here at the start has been looked at. */
  readonly onPodsAdded: () => void;
  /** Labels or annotations of the pod have changed. */
  readonly onRelabelled: (pod: Stored<Pod>) => void;
}

/** Fills and empties the desired state. */
export class PodController implements Component {
  readonly #env: PodControllerEnv;
  readonly #controller: Controller;
  readonly #runningPods: RunningPods;
  readonly #firstPass = new FirstPass();

  constructor(env: PodControllerEnv) {
    this.#env = env;
    this.#runningPods = new RunningPods(env.runtime);
    this.#controller = startController<ObservedPod, PodStep>(env, {
      name: "node_pods",
      sources: [],
      workers,
      backoff: { initialMs: 200, maximumMs: 10_000 },
      observe: (podUID) => this.#observe(podUID),
      decide: decidePodStep,
      actions: this.#actions(),
    });
  }

  stop(): Promise<void> {
    return this.#controller.stop();
  }

  /** True once every pod that was here at the start has been looked at, with the migration decided. */
  get hasAddedPods(): boolean {
    return this.#firstPass.isOver;
  }

  /** Every pod bound to this node. */
  setPods(pods: readonly Stored<Pod>[]): void {
    const relabelled = pods.filter((pod) => isRelabelled(this.#env.pods.get(pod.metadata.uid)?.pod, pod));
    const changed = this.#env.pods.setPods(pods);
    this.#begin();
    for (const podUID of changed) this.wake(podUID);
    for (const pod of relabelled) this.#env.onRelabelled(pod);
  }

  /** Looks at the pod. */
  wake(podUID: string): void {
    this.#controller.wake(podUID);
  }

  /** Reads claims and volumes of the pod again, at once. */
  reprocess(podUID: string): void {
    this.#env.pods.reprocess(podUID);
    this.wake(podUID);
  }

  /** Reads them for a start of the pod, see {@link NodePods.reprocessForStart}. */
  reprocessForStart(podUID: string): void {
    this.#env.pods.reprocessForStart(podUID);
    this.wake(podUID);
  }

  /** The ways of plugins are decided, or changed: every pod is resolved again. */
  reprocessAll(): void {
    this.#begin();
    for (const podUID of this.#env.pods.uids()) this.reprocess(podUID);
  }

  /** Looks at every pod that has something on this node: it was read back from disk. */
  wakeMounted(): void {
    for (const podUID of this.#podsOnDisk()) this.wake(podUID);
  }

  #podsOnDisk(): readonly string[] {
    const { actual, leftovers } = this.#env;
    return [...actual.podUIDs(), ...leftovers.podUIDs()];
  }

  get #mayBegin(): boolean {
    return this.#env.pods.areKnown && this.#env.paths.areDecided;
  }

  #begin(): void {
    if (this.#firstPass.hasBegun || !this.#mayBegin) return;
    const uids = [...this.#env.pods.uids(), ...this.#podsOnDisk()];
    this.#firstPass.begin(uids);
    for (const podUID of uids) this.wake(podUID);
    if (this.#firstPass.isOver) this.#env.onPodsAdded();
  }

  #observe(podUID: string): ObservedPod {
    const { clock, pods, desired, actual, leftovers, mounts } = this.#env;
    return {
      nowMs: clock.monotonicMs(),
      mayBegin: this.#mayBegin,
      known: pods.get(podUID),
      hasEnded: pods.hasEnded(podUID),
      isOver: pods.isOver(podUID),
      hasVolumes: [desired, actual, leftovers, mounts].some((state) => state.hasPod(podUID)),
      hasContainers: undefined,
      resolution: undefined,
    };
  }

  #actions(): Actions<ObservedPod, PodStep> {
    const looked = (next: { readonly requeueAfterMs?: number }, { key }: Pass) => {
      if (this.#firstPass.done(key)) this.#env.onPodsAdded();
      return next;
    };
    return {
      awaitStart: () => settled,
      forget: async (_step, _observed, pass) => {
        this.#env.pods.forgetOver(pass.key);
        await removePodDirectories(this.#env, pass.key);
        return looked(settled, pass);
      },
      askRuntime: async (_step, observed, { key, signal }) => {
        const running = await this.#runningPods.ask(signal);
        return { observed: { ...observed, hasContainers: running.has(key) } };
      },
      awaitContainers: ({ ms }, _observed, pass) => looked({ requeueAfterMs: ms }, pass),
      release: (_step, _observed, { key }) => this.#release(key),
      resolve: (_step, observed, pass) => this.#resolve(observed, pass),
      adopt: ({ resolution }, observed, { key }) => this.#adopt(key, resolution, observed),
      awaitRetry: ({ ms }, _observed, pass) => looked({ requeueAfterMs: ms }, pass),
      settle: (_step, _observed, pass) => looked(settled, pass),
    };
  }

  #release(podUID: string): Next<ObservedPod> {
    const { pods, desired, onDecided } = this.#env;
    // It may be bound here again since the runtime was asked.
    if (!pods.hasEnded(podUID)) return observeAgain;
    pods.markOver(podUID);
    desired.deletePod(podUID);
    onDecided(podUID);
    return observeAgain;
  }

  async #resolve(observed: ObservedPod, { signal }: Pass): Promise<Next<ObservedPod>> {
    const { known } = observed;
    if (known === undefined) return observeAgain;
    const { kube, plugins, paths } = this.#env;
    const resolution = await resolvePod({ kube, plugins, migration: paths.manager }, known.pod, signal);
    return { observed: { ...observed, resolution } };
  }

  /** Takes what was read into the desired state, unless something changed meanwhile. */
  #adopt(podUID: string, resolution: PodResolution, observed: ObservedPod): Next<ObservedPod> {
    const { pods, desired, clock, onDecided } = this.#env;
    const now = pods.get(podUID);
    // Asked for again since: claims and volumes may have changed after they were read.
    if (now === undefined || now.requests !== observed.known?.requests || pods.isOver(podUID)) {
      return observeAgain;
    }
    const errors = [...resolution.errors];
    for (const volume of resolution.volumes) {
      if (this.#isOnPathInForce(volume)) desired.add({ ...volume, pod: now.pod });
      else errors.push(`volume ${[...volume.outerNames].join(", ")}: ${volume.origin} is changing over`);
    }
    const retryAtMs = clock.monotonicMs() + backoffMs(podBackoff, now.failures + 1);
    pods.markResolved(podUID, errors, retryAtMs);
    onDecided(podUID);
    return observeAgain;
  }

  /** Whether the volume is resolved as its plugin's path demands right now. */
  #isOnPathInForce({ origin, plugin }: ResolvedVolume): boolean {
    if (origin === undefined) return true;
    const { paths } = this.#env;
    const onCsi = plugin.pluginName !== origin;
    return paths.isDecided(origin) && paths.manager.isMigrationEnabledForPlugin(origin) === onCsi;
  }
}

/** Whether labels or annotations differ; the same object is not looked into. */
function isRelabelled(before: Stored<Pod> | undefined, after: Stored<Pod>): boolean {
  if (before === undefined || before === after) return false;
  const of = ({ metadata: { labels, annotations } }: Stored<Pod>) => JSON.stringify([labels, annotations]);
  return of(before) !== of(after);
}
