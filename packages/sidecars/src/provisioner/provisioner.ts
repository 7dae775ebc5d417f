/** The provisioner: makes volumes for claims of one driver and deletes released ones. Wires its parts together. */
import {
  createEventRecorder,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Priority,
  type Reconcile,
  type Stored,
  startWorkQueue,
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
  resync,
} from "../common/caches.ts";
import type { Driver, SidecarEnv } from "../common/env.ts";
import { type Serve, type SidecarScope, startAlone } from "../common/sidecar.ts";
import { type CapacityOptions, serveCapacity } from "./capacity/index.ts";
import { type ClaimContext, reconcileClaim } from "./claim-reconciler.ts";
import { shouldEnqueueClaim } from "./claim-triggers.ts";
import type { NodeDeploymentOptions, OwnNode } from "./node-deployment.ts";
import { provisionerMetrics } from "./provisioner-metrics.ts";
import {
  cloneSourceToCheck,
  reconcileCloneSource,
  sourceIndexes,
  sweepSnapshots,
} from "./source-protection.ts";
import { topologyView } from "./topology-view.ts";
import { reconcileVolume, type VolumeContext } from "./volume-reconciler.ts";
import type { VolumeSettings } from "./volume-request.ts";
import { decideVolumeStep } from "./volume-step.ts";

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
  /** A volume of another mode than its snapshot's needs leave (`--prevent-volume-mode-conversion`); default true. */
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
  /** `reference`: the recorded behaviour of external-provisioner wherever ours is deliberately different. */
  readonly compat?: "reference";
}

/** Starts the provisioner of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startProvisioner(env: SidecarEnv, options: ProvisionerOptions = {}): Component {
  return startAlone(env, "provisioner", serveClaims, options);
}

/** Serves the claims and the released volumes of the driver. */
export const serveClaims: Serve<ProvisionerOptions> = async (sidecar, options, scope) => {
  const { informers } = sidecar;
  const driver = options.topology === false ? withoutPlaces(sidecar.driver) : sidecar.driver;
  const {
    timeoutMs = 10_000,
    backoff = { initialMs: 1000, maximumMs: 300_000 },
    resyncMs = 900_000,
  } = options;
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "provisioner" });
  const env = { ...sidecar.env, logger };
  const events = createEventRecorder(env, { component: `external-provisioner ${driver.name}` });
  scope.own(events);
  const claims = cachedClaims(informers);
  const volumes = cachedVolumes(informers);
  const storageClasses = cachedClasses(informers);
  const csiNodes = cachedCsiNodes(informers);
  const nodes = cachedNodes(informers);
  // Without attaching there are no attachments to heed, and no need of the right to read them.
  const attachments = driver.capabilities.controller.has("PUBLISH_UNPUBLISH_VOLUME")
    ? cachedAttachments(informers)
    : undefined;
  for (const [name, valuesOf] of Object.entries(sourceIndexes)) claims.addIndex(name, valuesOf);
  await informers.synced(scope.signal);
  const ownNode = await learnOwnNode(env, driver, options, timeoutMs, scope.signal);

  const tracked = trackWrites(env, informers);
  const capacity =
    options.capacity === undefined
      ? undefined
      : serveCapacity(
          { driver, informers },
          { ...options.capacity, env: tracked, timeoutMs, backoff, node: nodeOfCapacity(ownNode) },
          scope,
        );
  const topology = topologyView(driver.name, csiNodes, nodes);
  scope.onStop(topology.end);
  const context: ClaimContext & VolumeContext = {
    env: tracked,
    kube: tracked.kube,
    driver,
    ownNode,
    events,
    settings: settingsOf(env, driver, options),
    preventModeConversion: options.preventModeConversion ?? true,
    metrics: provisionerMetrics(env.meter),
    timeoutMs,
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
    attempts: new Map(),
    topologies: new Map(),
    contentions: new Map(),
    infeasibleRetryMs: backoff.maximumMs,
    protectVolumes: options.protectVolumes ?? true,
    onCapacityChanged: (storageClassName) => capacity?.refresh(storageClassName),
  };
  // Each key has its own delays, and workers bound the calls: a driver that comes back finds all of them soon.
  const retryRate = { qps: 100, burst: 1000 };
  const queue = (name: string, workers: number, reconcile: Reconcile) =>
    startWorkQueue(tracked, { name: `provisioner-${name}`, workers, backoff, retryRate, reconcile });
  const { workers = 100, cloningProtectionThreads = 1 } = options;
  const claimQueue = queue("claims", workers, (key, signal) => reconcileClaim(context, key, signal));
  const volumeQueue = queue("volumes", workers, (name, signal) => reconcileVolume(context, name, signal));
  const sourceQueue = queue("clone-sources", cloningProtectionThreads, (key, signal) =>
    reconcileCloneSource(context, key, signal),
  );
  scope.own(claimQueue, volumeQueue, sourceQueue);
  resync(env, scope, claims, resyncMs, (claim) => claimQueue.add(keyOf(claim), "background"));
  // Most changes of most volumes are no reason for a pass.
  const lookAtVolume = (pv: Stored<PersistentVolume>, priority?: Priority) => {
    if (decideVolumeStep(driver, pv, context.protectVolumes) !== "none") {
      volumeQueue.add(pv.metadata.name, priority);
    }
  };
  resync(env, scope, volumes, resyncMs, (pv) => lookAtVolume(pv, "background"));
  sweepRegularly(context, options, scope);
  const freeSource = (claim: Stored<PersistentVolumeClaim>) => {
    const source = cloneSourceToCheck(context, claim);
    if (source !== undefined) sourceQueue.add(source);
  };
  scope.onStop(
    claims.onChange({
      added: (claim, { initial }) => {
        claimQueue.add(keyOf(claim), initial ? "background" : "fresh");
        freeSource(claim);
      },
      updated: (before, claim) => {
        if (shouldEnqueueClaim(before, claim)) claimQueue.add(keyOf(claim));
        freeSource(claim);
      },
      deleted: (claim) => {
        context.topologies.delete(claim.metadata.uid);
        context.contentions.delete(claim.metadata.uid);
        claimQueue.add(keyOf(claim));
        freeSource(claim);
      },
    }),
    volumes.onChange({
      added: (pv, { initial }) => lookAtVolume(pv, initial ? "background" : "fresh"),
      updated: (_, pv) => lookAtVolume(pv),
      deleted: (pv) => volumeQueue.forget(pv.metadata.name),
    }),
  );
  // A volume still attached when it was released can be deleted once its last attachment ends.
  const onDetached = attachments?.onChange({
    deleted: ({ spec }) => {
      const pvName = spec.source.persistentVolumeName;
      if (pvName !== undefined) volumeQueue.add(pvName);
    },
  });
  if (onDetached !== undefined) scope.onStop(onDetached);
  logger.info("serving claims");
};

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
      env.logger.warn("the driver does not tell of its node", { error, retryInMs });
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
  scope: SidecarScope,
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
