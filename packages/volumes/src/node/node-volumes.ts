/**
 * The volume side of the node agent: plugin registration, CSINode, migration and volume manager in
 * one component. The kubelet shell owns the Node object, the pods and their containers.
 */
import type { CsiConnector } from "@longshore/csi";
import {
  type CSIDriver,
  createEventRecorder,
  type EventRecorder,
  type Informer,
  type KubeClient,
  type Node,
  type NodeCondition,
  type Pod,
  resources,
  type Stored,
  startInformer,
} from "@longshore/kube";
import {
  abortable,
  type Component,
  DeadlineError,
  type FeatureGates,
  type Host,
  type RuntimeEnv,
  StoppedError,
  stopAll,
  TaskGroup,
  withDeadline,
} from "@longshore/runtime";
import { uncertainVolumesOf } from "@longshore/storage";
import type { DynamicPluginProber } from "../framework/dynamic-plugin-prober.ts";
import type { PodSources } from "../framework/pod-sources.ts";
import type { PodTokens } from "../framework/pod-tokens.ts";
import type { ContainerRuntime } from "../framework/ports.ts";
import type { VolumeHost } from "../framework/volume-host.ts";
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { createVolumePluginManager } from "../framework/volume-plugin-manager.ts";
import { hasCsiDrivers } from "../plugins/csi/registered-csi-drivers.ts";
import { CsiNodeWriter } from "./csi-node/csi-node-writer.ts";
import { startDriverLimits } from "./csi-node/driver-limits.ts";
import { NodeInfoManager } from "./csi-node/node-info.ts";
import { NodeMigration } from "./migration/node-migration.ts";
import { PathsInForce } from "./migration/paths-in-force.ts";
import { csiRegistrationHandler } from "./registration/csi-registration-handler.ts";
import { startPluginRegistration } from "./registration/plugin-registration.ts";
import { NodePodSources } from "./sources/node-pod-sources.ts";
import { type MeasuredPodVolume, VolumeStatsCollector } from "./stats/volume-stats.ts";
import type { PodVolumeStats } from "./stats/volume-stats-summary.ts";
import { createServiceAccountTokens, type ServiceAccountTokens } from "./tokens/service-account-tokens.ts";
import { type SubPathUse, subPathError } from "./volume-manager/sub-paths.ts";
import { VolumeManager } from "./volume-manager/volume-manager.ts";
import { MountTimeoutError, mountTimeoutMs } from "./volume-manager/wait-for-volumes.ts";

/** The seams of the node agent's volume side. */
export type NodeVolumesEnv = RuntimeEnv & {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly connector: CsiConnector;
  readonly runtime: ContainerRuntime;
};

/** How it runs. */
export interface NodeVolumesOptions {
  readonly nodeName: string;
  /** The kubelet root directory. */
  readonly rootDir: string;
  /** Where the providers' names of devices are; default `/dev`. */
  readonly deviceDir?: string;
  /** This node's gates; which migration they ask for may be held back (see `conditions`). */
  readonly gates: FeatureGates;
  /** The volume plugins of this node, not initialised. */
  readonly plugins: readonly VolumePlugin[];
  /** Finds plugins that come and go; it is this node's alone, and stopped with it. */
  readonly prober?: DynamicPluginProber;
  /** Called (never re-entrantly) when `status()` may have changed, so that the shell can post it at once. */
  readonly onStatusChanged?: () => void;
  /** Called when a volume was measured, about once in a minute, for each pod that has it. */
  readonly onVolumeMeasured?: (volume: MeasuredPodVolume) => void;
}

/** A volume that a container can be started with. */
export interface MountedVolume {
  /** Where it is mounted on the node. */
  readonly path: string;
  readonly readOnly: boolean;
  /** Name of the volume's directory in the pod: that of the PersistentVolume, or the pod's own name of an inline volume. */
  readonly volumeName: string;
}

/** What the shell writes into the Node's status. */
export interface NodeVolumesStatus {
  /** For `status.volumesInUse`; undefined: leave the field as it is. */
  readonly volumesInUse: readonly string[] | undefined;
  /** For `status.volumesInUse` of a Node that is made; undefined: what is mounted is not known yet, so no Node is to be made. */
  readonly volumesFound: readonly string[] | undefined;
  /**
   * For the record of uncertain volumes of a Node that is made: what was found mounted at the start and has neither a VolumeAttachment nor
   * a provider that lists it. Of what a Flexvolume driver has attached, the Node is the only record.
   */
  readonly attachmentsFound: readonly string[];
  /** To be merged into `status.conditions` by type. */
  readonly conditions: readonly NodeCondition[];
  /** Not undefined: the node is not Ready, for this reason. */
  readonly error: string | undefined;
}

/**
 * The volume side of the node agent. The shell reports pods and what is posted, and asks before it starts or forgets a
 * pod. All but `waitForAttachAndMount` answer at once; as long as the plugins are being initialised, nothing counts as
 * mounted and nothing as gone. `stop` ends work under way and unmounts nothing.
 */
export interface NodeVolumes extends Component {
  /** Every pod bound to this node, as last known; the first call says that all of them are known. */
  setPods(pods: readonly Stored<Pod>[]): void;
  /**
   * Resolves when all volumes that the pod's containers use are mounted.
   * @param withinMs default two minutes and three seconds, as in Kubernetes
   * @throws MountTimeoutError or PodVolumesError saying which volumes are not and why; call again to retry
   */
  waitForAttachAndMount(pod: Stored<Pod>, signal: AbortSignal, withinMs?: number): Promise<void>;
  /** Volumes of the pod that are certainly mounted, by the names in the pod's spec. */
  mountedVolumes(podUID: string): ReadonlyMap<string, MountedVolume>;
  /**
   * Binds a part of a mounted volume for one mount of a container; returns where the node has it. Idempotent. It goes with
   * the volume. @throws SubPathError
   */
  bindSubPath(podUID: string, use: SubPathUse): Promise<string>;
  /** True once nothing of the pod's volumes is mounted or may be mounted on this node. */
  podVolumesGone(podUID: string): boolean;
  /** What is to be posted in the Node's status, as of now. */
  status(): NodeVolumesStatus;
  /** Room and health of mounted volumes by pod, as measured in the last minute: for the summary API. */
  volumeStats(): readonly PodVolumeStats[];
  /** `status().volumesInUse`. */
  volumesInUse(): readonly string[] | undefined;
  /** To be called with the list that the Node's status holds, after each successful write or read of it. */
  markReportedInUse(names: readonly string[]): void;
  /** `status().error`. */
  kubeletError(): string | undefined;
  /** `status().conditions`. */
  conditions(): readonly NodeCondition[];
}

/**
 * Starts it; returns at once and works in the background. It registers plugins, and mounts once `setPods` has been called
 * and the paths of the in-tree plugins are decided; what an earlier agent has mounted is found again first.
 */
export function startNodeVolumes(env: NodeVolumesEnv, options: NodeVolumesOptions): NodeVolumes {
  return new RunningNodeVolumes(env, options);
}

class RunningNodeVolumes implements NodeVolumes {
  readonly #env: NodeVolumesEnv;
  readonly #options: NodeVolumesOptions;
  readonly #tasks: TaskGroup;
  readonly #events: EventRecorder;
  readonly #node: Informer<Node>;
  readonly #csiDrivers: Informer<CSIDriver>;
  readonly #csiNode: CsiNodeWriter;
  readonly #tokens: ServiceAccountTokens;
  readonly #sources: NodePodSources;
  readonly #paths: PathsInForce;
  readonly #migration: NodeMigration;
  readonly #parts: Component[];
  readonly #manager: Promise<VolumeManager | undefined>;
  #running: VolumeManager | undefined;
  #stats: VolumeStatsCollector | undefined;
  #pods: readonly Stored<Pod>[] | undefined;
  #reported: readonly string[] | undefined;
  #pluginError: string | undefined;
  #isStatusReported = true;

  constructor(env: NodeVolumesEnv, options: NodeVolumesOptions) {
    this.#env = env;
    this.#options = options;
    const { nodeName } = options;
    this.#tasks = new TaskGroup((error) => env.logger.error("node volumes task ended", { error }));
    this.#events = createEventRecorder(env, { component: "kubelet", host: nodeName });
    this.#node = startInformer(env, resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
    this.#csiDrivers = startInformer(env, resources.csiDrivers);
    this.#csiNode = new CsiNodeWriter(env, nodeName);
    this.#tokens = createServiceAccountTokens(env);
    this.#sources = new NodePodSources({ ...env, tokens: this.#tokens }, (volume, podUID) =>
      this.#running?.remount(volume, podUID),
    );
    const onChange = () => this.#statusChanged();
    this.#paths = new PathsInForce(options.gates);
    const { rootDir } = options;
    const parts = { paths: this.#paths, csiNode: this.#csiNode, events: this.#events };
    this.#migration = new NodeMigration({ ...env, nodeName, rootDir, ...parts, onChange });
    this.#parts = [this.#migration, this.#events, this.#node, this.#csiDrivers, this.#sources];
    this.#manager = this.#start();
  }

  /** The Node is listed again where its watch cannot go on: the API server may have been restored from a backup. */
  #followLists(): Component {
    const { progress } = this.#node;
    let known = progress.lastListApplied;
    const stop = progress.onProgress(() => {
      if (progress.lastListApplied === known) return;
      known = progress.lastListApplied;
      this.#migration.mayBeRestored();
    });
    return { stop: async () => stop() };
  }

  async #start(): Promise<VolumeManager | undefined> {
    const env = this.#env;
    const { nodeName, rootDir } = this.#options;
    const plugins = await createVolumePluginManager(
      volumeHostOf(env, this.#options, this, {
        sources: this.#sources,
        tokens: this.#tokens,
        csiDrivers: this.#csiDrivers,
        events: this.#events,
      }),
      this.#options.plugins,
      this.#options.prober,
    );
    if (this.#tasks.signal.aborted) return undefined;
    const csiPlugin: object | undefined = plugins.plugins.find(hasCsiDrivers);
    const csiDrivers = csiPlugin !== undefined && hasCsiDrivers(csiPlugin) ? csiPlugin.csiDrivers : undefined;
    const manager = new VolumeManager(
      {
        ...env,
        plugins,
        paths: this.#paths,
        events: this.#events,
        csiDrivers,
        onVolumeForgotten: (uniqueName) => this.#sources.release(uniqueName),
        cachedNode: () => this.#node.get(nodeName),
      },
      { nodeName, rootDir, onChange: () => this.#statusChanged() },
    );
    this.#running = manager;
    const volumeUse = (uniqueName: string) => manager.volumeUse(uniqueName);
    const onMeasured = this.#options.onVolumeMeasured;
    const stats = new VolumeStatsCollector({ ...env, events: this.#events, volumeUse, onMeasured });
    this.#stats = stats;
    this.#parts.push(stats);
    manager.onVolumeChange(({ uniqueName }) => {
      if (uniqueName !== undefined) stats.wake(uniqueName);
    });
    this.#migration.follow(manager);
    this.#parts.push(manager, this.#followLists());
    const onNode = (before: Node | undefined, after: Node) => {
      if (volumesOf(before) === volumesOf(after)) return;
      const known = new Set(before?.status?.volumesAttached?.map(({ name }) => name));
      const attached = (after.status?.volumesAttached ?? []).map(({ name }) => name);
      manager.wakeVolumes(attached.filter((name) => !known.has(name)));
      this.#migration.wake();
    };
    this.#node.onChange({ added: (node) => onNode(undefined, node), updated: onNode });
    const onDriver = ({ metadata, spec }: Stored<CSIDriver>) => {
      if (spec.attachRequired === false) manager.needsNoAttach(metadata.name);
    };
    this.#csiDrivers.onChange({ added: onDriver, updated: (_before, after) => onDriver(after) });
    if (csiDrivers !== undefined) {
      const nodeInfo = new NodeInfoManager(env.kube, nodeName, this.#csiNode);
      const handlers = { CSIPlugin: csiRegistrationHandler(env, csiDrivers, nodeInfo) };
      // A registrar that is refused exits; one that is early waits for the Node (docs/behaviour/node-agent.md 1.3). It waits for the
      // annotation, too: a CSINode that a driver made without it would say of migrated volumes in use that they are in-tree.
      const mayRegister = () => this.#node.get(nodeName) !== undefined && this.#migration.isInitialised;
      const registration = startPluginRegistration(env, { rootDir, handlers, mayRegister });
      const limits = { registered: csiDrivers, csiDrivers: this.#csiDrivers, csiNode: this.#csiNode };
      this.#parts.push(registration, startDriverLimits(env, limits));
      this.#node.onChange({ added: () => registration.wake() });
      this.#migration.onInitialised(() => registration.wake());
    }
    // What the shell has reported while the plugins were being initialised.
    if (this.#pods !== undefined) manager.setPods(this.#pods);
    if (this.#reported !== undefined) manager.markReportedInUse(this.#reported);
    manager.start();
    return manager;
  }

  async stop(): Promise<void> {
    await this.#tasks.stop();
    // The start may wait for its drivers.
    await this.#options.prober?.stop();
    // The start adds parts until it has ended.
    await this.#manager.catch(() => {});
    await stopAll(this.#parts.splice(0));
  }

  setPods(pods: readonly Stored<Pod>[]): void {
    this.#pods = pods;
    this.#running?.setPods(pods);
  }

  async waitForAttachAndMount(
    pod: Stored<Pod>,
    signal: AbortSignal,
    withinMs = mountTimeoutMs,
  ): Promise<void> {
    const manager = await this.#managerWithin(withinMs, signal);
    if (manager === undefined) throw new StoppedError();
    await manager.waitForAttachAndMount(pod, signal, withinMs);
  }

  async #managerWithin(withinMs: number, signal: AbortSignal): Promise<VolumeManager | undefined> {
    try {
      return await withDeadline(this.#env.clock, withinMs, signal, (within) =>
        abortable(this.#manager, within),
      );
    } catch (error) {
      if (!(error instanceof DeadlineError) || signal.aborted) throw error;
      throw new MountTimeoutError("timed out waiting for volumes: the plugins are still being initialised", {
        cause: error,
      });
    }
  }

  mountedVolumes(podUID: string): ReadonlyMap<string, MountedVolume> {
    return this.#running?.mountedVolumes(podUID) ?? new Map();
  }

  async bindSubPath(podUID: string, use: SubPathUse): Promise<string> {
    if (this.#running === undefined) throw subPathError(use, "the volume is not mounted");
    return this.#running.bindSubPath(podUID, use);
  }

  podVolumesGone(podUID: string): boolean {
    return this.#running?.podVolumesGone(podUID) ?? false;
  }

  status(): NodeVolumesStatus {
    return {
      volumesInUse: this.volumesInUse(),
      volumesFound: this.#running?.volumesFound(),
      attachmentsFound: this.#running?.attachmentsFound() ?? [],
      conditions: this.conditions(),
      error: this.kubeletError(),
    };
  }

  volumesInUse(): readonly string[] | undefined {
    return this.#running?.volumesInUse();
  }

  volumeStats(): readonly PodVolumeStats[] {
    return this.#stats?.summary() ?? [];
  }

  markReportedInUse(names: readonly string[]): void {
    this.#reported = names;
    this.#running?.markReportedInUse(names);
  }

  kubeletError(): string | undefined {
    return this.#migration.error ?? this.#pluginError;
  }

  conditions(): readonly NodeCondition[] {
    return [this.#migration.condition];
  }

  /** Set by a plugin that keeps the node from being Ready. */
  setKubeletError(reason: string | undefined): void {
    this.#pluginError = reason;
    this.#statusChanged();
  }

  /** Calls the shell's `onStatusChanged` in a microtask; several changes at once make one call. */
  #statusChanged(): void {
    if (!this.#isStatusReported || this.#options.onStatusChanged === undefined) return;
    this.#isStatusReported = false;
    void Promise.resolve().then(() => {
      this.#isStatusReported = true;
      if (!this.#tasks.signal.aborted) this.#options.onStatusChanged?.();
    });
  }
}

/** Equal as long as the Node says the same of volumes. */
function volumesOf(node: Node | undefined): string {
  const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
  return JSON.stringify([volumesAttached, volumesInUse, uncertainVolumesOf(node)]);
}

/** What the plugins see of this node. */
function volumeHostOf(
  env: NodeVolumesEnv,
  { nodeName, rootDir, deviceDir }: NodeVolumesOptions,
  agent: Pick<RunningNodeVolumes, "setKubeletError">,
  {
    sources,
    tokens,
    csiDrivers,
    events,
  }: {
    readonly events: Pick<EventRecorder, "event">;
    readonly sources: PodSources;
    readonly tokens: PodTokens;
    readonly csiDrivers: Pick<Informer<CSIDriver>, "get">;
  },
): VolumeHost {
  return {
    ...env,
    // Cached, as in the kubelet: each mount asks for it four times. One that the cache lacks may have just been created.
    csiDriver: async (name, signal) =>
      csiDrivers.get(name) ?? env.kube.get(resources.csiDrivers, { name }, { signal }),
    kubelet: {
      nodeName,
      rootDir,
      ...(deviceDir === undefined ? {} : { deviceDir }),
      host: env.host,
      sources,
      tokens,
      events,
      setKubeletError: (reason) => agent.setKubeletError(reason),
    },
  };
}
