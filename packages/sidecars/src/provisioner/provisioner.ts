/** The provisioner: makes volumes for claims of one driver and deletes released ones. Wires its parts together. */
import { createEventRecorder, keyOf, startWorkQueue, trackWrites } from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
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
import { type Serve, startAlone } from "../common/sidecar.ts";
import { type ClaimContext, reconcileClaim } from "./claim-reconciler.ts";
import { shouldEnqueueClaim } from "./claim-triggers.ts";
import { provisionerMetrics } from "./provisioner-metrics.ts";
import { sourceIndexes } from "./source-protection.ts";
import { reconcileVolume, type VolumeContext } from "./volume-reconciler.ts";
import type { VolumeSettings } from "./volume-request.ts";

/** How the provisioner works; the defaults are those of the reference (sidecars.md §2.1). */
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
  /** `reference`: the recorded behaviour of external-provisioner wherever ours is deliberately different. */
  readonly compat?: "reference";
}

/** Starts the provisioner of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startProvisioner(env: SidecarEnv, options: ProvisionerOptions = {}): Component {
  return startAlone(env, "provisioner", serveClaims, options);
}

/** Serves the claims and the released volumes of the driver. */
export const serveClaims: Serve<ProvisionerOptions> = async (sidecar, options, scope) => {
  const { env, informers } = sidecar;
  const driver = options.topology === false ? withoutPlaces(sidecar.driver) : sidecar.driver;
  const { timeoutMs = 10_000, backoff = { initialMs: 1000, maximumMs: 300_000 }, workers = 100 } = options;
  const logger = env.logger.child({ driver: driver.name, sidecar: "provisioner" });
  const events = createEventRecorder(env, { component: `external-provisioner ${driver.name}` });
  scope.own(events);
  const { resyncMs = 900_000 } = options;
  const claims = cachedClaims(informers);
  const volumes = cachedVolumes(informers);
  const storageClasses = cachedClasses(informers);
  const csiNodes = cachedCsiNodes(informers);
  const nodes = cachedNodes(informers);
  const attachments = cachedAttachments(informers);
  for (const [name, valuesOf] of Object.entries(sourceIndexes)) claims.addIndex(name, valuesOf);
  await informers.synced(scope.signal);

  const tracked = trackWrites({ ...env, logger }, informers);
  const context: ClaimContext & VolumeContext = {
    env: tracked,
    kube: tracked.kube,
    driver,
    events,
    settings: {
      identity: options.identity ?? identityOf(env, driver.name),
      volumeNamePrefix: options.volumeNamePrefix ?? "pvc",
      volumeNameUuidLength: options.volumeNameUuidLength ?? -1,
      strictTopology: options.strictTopology ?? false,
      immediateTopology: options.immediateTopology ?? true,
      defaultFsType: options.defaultFsType ?? "",
      extraCreateMetadata: options.extraCreateMetadata ?? false,
      controllerPublishReadOnly: options.controllerPublishReadOnly ?? false,
      crossNamespaceDataSource: options.crossNamespaceDataSource ?? false,
      volumeAttributesClass: options.volumeAttributesClass ?? true,
    },
    preventModeConversion: options.preventModeConversion ?? true,
    topologies: new Map(),
    metrics: provisionerMetrics(env.meter),
    onCapacityChanged: () => {},
    timeoutMs,
    likeReference: options.compat === "reference",
    claims,
    volumes,
    storageClasses,
    storageClass: (name) => storageClasses.get(name),
    csiNodes: () => csiNodes.list(),
    nodes: () => nodes.list(),
    nodeByName: (name) => nodes.get(name),
    attachedTo: (pvName) => attachments.byIndex("byVolume", pvName).map(({ spec }) => spec.nodeName),
    attempts: new Map(),
    infeasibleRetryMs: backoff.maximumMs,
    protectVolumes: options.protectVolumes ?? true,
  };
  const claimQueue = startWorkQueue(context.env, {
    name: "provisioner-claims",
    workers,
    backoff,
    reconcile: (key, passSignal) => reconcileClaim(context, key, passSignal),
  });
  const volumeQueue = startWorkQueue(context.env, {
    name: "provisioner-volumes",
    workers,
    backoff,
    reconcile: (name, passSignal) => reconcileVolume(context, name, passSignal),
  });
  scope.own(claimQueue, volumeQueue);
  resync(env, scope, claims, resyncMs, (claim) => claimQueue.add(keyOf(claim), "background"));
  resync(env, scope, volumes, resyncMs, (pv) => volumeQueue.add(pv.metadata.name, "background"));
  scope.onStop(
    claims.onChange({
      added: (claim, { initial }) => claimQueue.add(keyOf(claim), initial ? "background" : "fresh"),
      updated: (before, claim) => {
        if (!shouldEnqueueClaim(before, claim)) return;
        claimQueue.add(keyOf(claim));
      },
      deleted: (claim) => {
        context.topologies.delete(claim.metadata.uid);
        claimQueue.add(keyOf(claim));
      },
    }),
    volumes.onChange({
      added: (pv, { initial }) => volumeQueue.add(pv.metadata.name, initial ? "background" : "fresh"),
      updated: (_, pv) => volumeQueue.add(pv.metadata.name),
      deleted: (pv) => volumeQueue.forget(pv.metadata.name),
    }),
    // A volume still attached when it was released can be deleted once its last attachment ends.
    attachments.onChange({
      deleted: ({ spec }) => {
        const pvName = spec.source.persistentVolumeName;
        if (pvName !== undefined) volumeQueue.add(pvName);
      },
    }),
  );
  logger.info("serving claims");
};

/** `<unix ms>-<random>-<driver>`, as the reference forms it. */
function identityOf(env: SidecarEnv, driverName: string): string {
  return `${env.clock.now().getTime()}-${env.random.below(10_000, "provisioner identity")}-${driverName}`;
}

/** The driver as one that makes no difference between places. */
function withoutPlaces(driver: Driver): Driver {
  const plugin = new Set(driver.capabilities.plugin);
  plugin.delete("VOLUME_ACCESSIBILITY_CONSTRAINTS");
  return { ...driver, capabilities: { ...driver.capabilities, plugin } };
}
