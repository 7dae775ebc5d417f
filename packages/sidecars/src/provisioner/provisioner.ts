/** The provisioner: makes volumes for claims of one driver and deletes released ones. Wires its parts together. */
import {
  type ComponentScope,
  createEventRecorder,
  type Informer,
  type PersistentVolume,
  type SharedInformers,
  trackWrites,
} from "@longshore/kube";
import { type BackoffPolicy, backoffMs, type Component, periodically } from "@longshore/runtime";
import {
  cachedAttachments,
  cachedClaims,
  cachedClasses,
  cachedCsiNodes,
  cachedNodes,
  cachedVolumes,
} from "../common/caches.ts";
import { provisionerQueues, withQueueNames } from "../common/reference-queues.ts";
import { type Serve, type SidecarContext, startAlone } from "../common/sidecar.ts";
import type { Driver, SidecarEnv } from "../common/sidecar-env.ts";
import { type CapacityOptions, serveCapacity } from "./capacity/index.ts";
import type { ClaimContext } from "./claims/claim-context.ts";
import { startClaims } from "./claims/claim-controller.ts";
import { ClaimMemory } from "./claims/claim-memory.ts";
import type { NodeDeploymentOptions, OwnNode } from "./node-deployment.ts";
import { provisionerMetrics } from "./provisioner-metrics.ts";
import type { VolumeSettings } from "./requests/request-context.ts";
import { startCloneSources } from "./sources/clone-source-controller.ts";
import { sourceIndexes, sweepSnapshots } from "./sources/protect-source.ts";
import { type TopologyView, topologyView } from "./topology/topology-view.ts";
import type { VolumeContext } from "./volumes/volume-context.ts";
import { startVolumes } from "./volumes/volume-controller.ts";

/** How the provisioner works; the defaults are those of the reference (docs/behaviour/sidecars.md 2.1). */
export interface ProvisionerOptions extends Partial<VolumeSettings> {
  /** Deadline of a CSI call, in milliseconds; default 10 s. */
  readonly timeoutMs?: number;
  /** Delays after failures of one claim or volume; default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Claims, and volumes, worked on at the same time; default 100. */
  readonly workers?: number;
  /** Every object is looked at again after this time, in milliseconds; default 15 min. */
  readonly resyncMs?: number;
  /** Changing the volume mode needs an annotation on the snapshot content; default true. */
  readonly preventModeConversion?: boolean;
  /** Volumes are made where their pods can run, if the driver has places (gate Topology); default true. */
  readonly topology?: boolean;
  /** Volumes with policy Delete carry a finalizer, so that none goes before its disk; default true. */
  readonly protectVolumes?: boolean;
  /** One provisioner a node (`--node-deployment`); left out: one serves the cluster. */
  readonly nodeDeployment?: NodeDeploymentOptions;
  /** Publishes the driver's capacity for schedulers (`--enable-capacity`); absent: does not. */
  readonly capacity?: CapacityOptions;
  /** Claims released as sources of clones at the same time (`--cloning-protection-threads`); default 1. */
  readonly cloningProtectionThreads?: number;
  /** How often left-over protection of snapshots is looked for (`--snapshot-orphan-sweep-interval`), in milliseconds; 0: never; default 5 min. */
  readonly snapshotSweepMs?: number;
  /** Names this process; its events come from `DRIVER_INSTANCE`, as the reference's do. Left out: from the provisioner. */
  readonly instance?: string;
  /** `reference`: the recorded behaviour of external-provisioner wherever ours is deliberately different. */
  readonly compat?: "reference";
}

/** Starts the provisioner of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startProvisioner(env: SidecarEnv, options: ProvisionerOptions = {}): Component {
  return startAlone(env, "provisioner", serveClaims, options);
}

/** Serves the claims and the released volumes of the driver. */
export const serveClaims: Serve<ProvisionerOptions> = async (sidecar, options, scope) => {
  const driver = options.topology === false ? withoutPlaces(sidecar.driver) : sidecar.driver;
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "provisioner" });
  const { meter: own } = sidecar.env;
  const meter = options.compat === "reference" ? withQueueNames(own, provisionerQueues) : own;
  const env = { ...sidecar.env, logger, meter };
  const { instance } = options;
  const component =
    instance === undefined ? `external-provisioner ${driver.name}` : `${driver.name}_${instance}`;
  const events = createEventRecorder(env, { component });
  scope.own(events);
  const caches = cachesOf(sidecar.informers, driver);
  await sidecar.informers.synced(scope.signal);
  const { timeoutMs = 10_000, backoff = { initialMs: 1000, maximumMs: 300_000 } } = options;
  const ownNode = await learnOwnNode(env, driver, options, timeoutMs, scope.signal);
  const serving = {
    ...sidecar,
    driver,
    env: trackWrites(env, sidecar.informers),
    timeoutMs,
    backoff,
    ownNode,
  };
  const capacity = startCapacityTracking(serving, options, scope);
  const onCapacityChanged = (storageClassName: string) => capacity?.refresh(storageClassName);
  startControllers({ ...serving, events, onCapacityChanged }, caches, options, scope);
  logger.info("serving claims");
};

type Caches = ReturnType<typeof cachesOf>;

function cachesOf(informers: SharedInformers, driver: Driver) {
  const claims = cachedClaims(informers);
  for (const [name, valuesOf] of Object.entries(sourceIndexes)) claims.addIndex(name, valuesOf);
  // Without attaching there are no attachments to heed, and no need of the right to read them.
  const attaches = driver.capabilities.controller.has("PUBLISH_UNPUBLISH_VOLUME");
  return {
    claims,
    volumes: cachedVolumes(informers),
    storageClasses: cachedClasses(informers),
    csiNodes: cachedCsiNodes(informers),
    nodes: cachedNodes(informers),
    attachments: attaches ? cachedAttachments(informers) : undefined,
  };
}

interface Serving extends SidecarContext {
  readonly timeoutMs: number;
  readonly backoff: BackoffPolicy;
  readonly ownNode: OwnNode | undefined;
}

function startCapacityTracking(serving: Serving, options: ProvisionerOptions, scope: ComponentScope) {
  if (options.capacity === undefined) return undefined;
  return serveCapacity(
    serving,
    { ...options.capacity, ...serving, node: nodeOfCapacity(serving.ownNode) },
    scope,
  );
}

/** Claims, volumes, and what claims are copied from: each key has delays of its own, and workers bound the calls. */
function startControllers(
  serving: Serving & Pick<ClaimContext, "events" | "onCapacityChanged">,
  caches: Caches,
  options: ProvisionerOptions,
  scope: ComponentScope,
): void {
  const { workers = 100, cloningProtectionThreads = 1, resyncMs = 900_000 } = options;
  const { backoff } = serving;
  const { claims } = caches;
  const memory = new ClaimMemory();
  scope.onStop(claims.onChange({ deleted: ({ metadata }) => memory.forgetClaim(metadata.uid) }));
  const topology = topologyView(serving.driver.name, caches.csiNodes, caches.nodes);
  scope.onStop(topology.end);
  const context = contextOf(serving, caches, memory, topology, options);
  // A driver that comes back finds all of them soon.
  const queue = { backoff, retryRate: { qps: 100, burst: 1000 } };
  scope.own(
    startClaims({ ...context, claims }, { ...queue, workers, resyncMs }),
    startVolumes(context, caches.attachments, { ...queue, workers, resyncMs }),
    startCloneSources({ env: serving.env, claims }, { ...queue, workers: cloningProtectionThreads }),
  );
  sweepRegularly(context, options, scope);
}

function contextOf(
  serving: Serving & Pick<ClaimContext, "events" | "onCapacityChanged">,
  { claims, volumes, storageClasses, csiNodes, nodes, attachments }: Caches,
  memory: ClaimMemory,
  topology: TopologyView,
  options: ProvisionerOptions,
): ClaimContext & VolumeContext & { readonly volumes: Informer<PersistentVolume> } {
  const { env, driver, backoff } = serving;
  return {
    ...serving,
    kube: env.kube,
    settings: settingsOf(env, driver, options),
    preventModeConversion: options.preventModeConversion ?? true,
    metrics: provisionerMetrics(env.meter),
    likeReference: options.compat === "reference",
    claims,
    volumes,
    storageClasses,
    storageClass: (name) => storageClasses.get(name),
    topologyNow: topology.now,
    csiNodes: () => csiNodes.list(),
    nodes: () => nodes.list(),
    nodeByName: (name) => nodes.get(name),
    attachedTo: (pvName) => attachments?.byIndex("byVolume", pvName).map(({ spec }) => spec.nodeName) ?? [],
    memory,
    topologies: memory.topologies,
    // As in the reference, INVALID_ARGUMENT waits for the longest delay at once (docs/behaviour/sidecars.md 2.2).
    infeasibleRetryMs: backoff.maximumMs,
    protectVolumes: options.protectVolumes ?? true,
  };
}

function settingsOf(env: SidecarEnv, driver: Driver, options: ProvisionerOptions): VolumeSettings {
  return {
    identity: options.identity ?? identityOf(env, driver.name, options.nodeDeployment?.nodeName),
    volumeNamePrefix: options.volumeNamePrefix ?? "pvc",
    volumeNameUuidLength: options.volumeNameUuidLength ?? -1,
    strictTopology: options.strictTopology ?? false,
    immediateTopology: options.immediateTopology ?? true,
    defaultFsType: options.defaultFsType ?? "",
    extraCreateMetadata: options.extraCreateMetadata ?? false,
    controllerPublishReadOnly: options.controllerPublishReadOnly ?? false,
    crossNamespaceDataSource: options.crossNamespaceDataSource ?? false,
    volumeAttributesClass: options.volumeAttributesClass ?? true,
  };
}

/** `<unix ms>-<random>-<driver>[-<node>]`, as the reference forms it. */
function identityOf(env: SidecarEnv, driverName: string, nodeName: string | undefined): string {
  const number = env.random.below(10_000, "provisioner identity");
  const identity = `${env.clock.now().getTime()}-${number}-${driverName}`;
  return nodeName === undefined ? identity : `${identity}-${nodeName}`;
}

/** Asks the driver about its node, again and again, where each node has a provisioner of its own. */
async function learnOwnNode(
  env: SidecarEnv,
  driver: Driver,
  { nodeDeployment: options }: ProvisionerOptions,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<OwnNode | undefined> {
  if (options === undefined) return undefined;
  const { nodeName: name, immediateBinding = true, baseDelayMs = 20_000, maxDelayMs = 60_000 } = options;
  const backoff = { initialMs: 1000, maximumMs: 60_000 };
  for (let failures = 1; ; failures++) {
    try {
      const { accessibleTopology } = await driver.csi.node.nodeGetInfo({}, { signal, timeoutMs });
      const segments = accessibleTopology?.segments;
      return { name, segments, immediateBinding, baseDelayMs, maxDelayMs };
    } catch (error) {
      if (signal.aborted) throw error;
      const retryInMs = backoffMs(backoff, failures, env.random);
      env.logger.warn("the driver does not describe its node", { error, retryInMs });
      await env.clock.sleep(retryInMs, signal);
    }
  }
}

function nodeOfCapacity(own: OwnNode | undefined) {
  return own === undefined ? undefined : { name: own.name, segments: own.segments ?? {} };
}

/** Nothing else frees a snapshot whose claim was deleted, or whose restore was finished by a process that died. */
function sweepRegularly(
  context: ClaimContext,
  { snapshotSweepMs = 300_000 }: ProvisionerOptions,
  scope: ComponentScope,
): void {
  if (snapshotSweepMs <= 0 || !context.driver.capabilities.controller.has("CREATE_DELETE_SNAPSHOT")) return;
  const options = { name: "snapshot sweep", periodMs: snapshotSweepMs };
  scope.spawn((signal) => periodically(context.env, options, signal, () => sweepSnapshots(context, signal)));
}

/** The driver as one that makes no difference between places. */
function withoutPlaces(driver: Driver): Driver {
  const plugin = new Set(driver.capabilities.plugin);
  plugin.delete("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  return { ...driver, capabilities: { ...driver.capabilities, plugin } };
}
