/**
 * The snapshot controller, one for a cluster: joins VolumeSnapshots and VolumeSnapshotContents, and the same of groups.
 * Wires its parts together. The drivers' snapshotters do the rest.
 */
import {
  createEventRecorder,
  type KubeEnv,
  nodeSelectorMatches,
  type SharedInformers,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { groupKindsRemedy, snapshotKindsRemedy, whenServed } from "../common/served-kinds.ts";
import { SidecarScope } from "../common/sidecar.ts";
import { boundGroupContents, boundSnapshotContents, reconcileBoundContent } from "./bound-contents.ts";
import { type GroupContext, reconcileGroup } from "./group-reconciler.ts";
import {
  observeGroup,
  observeSnapshot,
  type SnapshotCaches,
  startGroupCaches,
  startSnapshotCaches,
} from "./snapshot-caches.ts";
import { SnapshotMetrics } from "./snapshot-metrics.ts";
import { reconcileSnapshot, type SnapshotContext } from "./snapshot-reconciler.ts";
import { wakeForGroups, wakeForSnapshots } from "./snapshot-triggers.ts";
import { reconcileSourceClaim } from "./source-claims.ts";
import { SubjectWrites } from "./subject-writes.ts";

/**
 * How the snapshot controller works; the defaults are those of the reference (snapshot-controller;
 * docs/behaviour/sidecars.md 5).
 */
export interface SnapshotControllerOptions {
  /** Delays after failures of one object (`--retry-interval-start`, `--retry-interval-max`); default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Objects of each kind worked on at the same time (`--worker-threads`); default 10. */
  readonly workers?: number;
  /** Every object is looked at again after this time, in milliseconds (`--resync-period`); default 15 min. */
  readonly resyncMs?: number;
  /**
   * Contents record the mode of their volume, so that no volume of another mode is made from them
   * (`--prevent-volume-mode-conversion`); default true.
   */
  readonly preventVolumeModeConversion?: boolean;
  /** Snapshots of local volumes are left to the snapshotters of their nodes (`--enable-distributed-snapshotting`); default false. */
  readonly distributed?: boolean;
  /** Group snapshots, too (`--feature-gates=CSIVolumeGroupSnapshot=true`); default false. */
  readonly groupSnapshots?: boolean;
}

/** The seams of the snapshot controller; `informers` of a process that has some. */
export interface SnapshotControllerEnv extends KubeEnv {
  readonly informers?: SharedInformers;
}

interface Serving {
  readonly env: KubeEnv;
  readonly informers: SharedInformers;
  readonly caches: SnapshotCaches;
  readonly events: ReturnType<typeof createEventRecorder>;
  readonly scope: SidecarScope;
  readonly metrics: SnapshotMetrics;
  readonly backoff: BackoffPolicy;
  readonly workers: number;
  readonly resyncMs: number;
}

/**
 * Starts the snapshot controller. Where the kinds of snapshots are not installed, it waits for them and says so
 * (the reference ends after `--retry-crd-interval-max`).
 */
export function startSnapshotController(
  env: SnapshotControllerEnv,
  options: SnapshotControllerOptions = {},
): Component {
  const logger = env.logger.child({ controller: "snapshot-controller" });
  const scope = new SidecarScope((error) => logger.error("the snapshot controller failed", { error }));
  scope.spawn(async (signal) => {
    const { volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
    const kinds = [volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses];
    await whenServed({ ...env, logger }, kinds, snapshotKindsRemedy, signal);
    const informers = env.informers ?? sharedInformers(env);
    if (env.informers === undefined) scope.own(informers);
    const events = createEventRecorder(env, { component: "snapshot-controller" });
    scope.own(events);
    const { distributed = false, workers = 10, resyncMs = 900_000 } = options;
    const caches = await startSnapshotCaches(informers, { distributed }, signal);
    const tracked = trackWrites({ ...env, logger }, informers);
    const { backoff = { initialMs: 1000, maximumMs: 300_000 } } = options;
    const metrics = new SnapshotMetrics(env);
    const serving = { env: tracked, informers, caches, events, scope, metrics, backoff, workers, resyncMs };
    const queues = serveSnapshots(serving, options);
    if (options.groupSnapshots === true) await serveGroups(serving, queues, signal);
  });
  return scope;
}

/** Queues over the keys of snapshots, contents and claims. */
function serveSnapshots(serving: Serving, options: SnapshotControllerOptions) {
  const { env, caches, events, scope, metrics, backoff, workers } = serving;
  const { nodes, claims } = caches;
  const context: SnapshotContext = {
    env,
    writes: new SubjectWrites(env, events, snapshotResources.volumeSnapshots),
    metrics,
    observe: (key) => observeSnapshot(caches, key),
    claim: (key) => claims.get(key),
    classes: () => caches.classes.list(),
    managedBy: ({ pv }) => {
      const affinity = pv.spec?.nodeAffinity?.required;
      if (nodes === undefined || affinity === undefined) return undefined;
      return nodes.list().find((node) => nodeSelectorMatches(node, affinity))?.metadata.name;
    },
    settings: { preventVolumeModeConversion: options.preventVolumeModeConversion ?? true },
    lookAgainMs: backoff.maximumMs,
  };
  const queue = { workers, backoff };
  const snapshotQueue = startWorkQueue(env, {
    ...queue,
    name: "snapshot-controller-snapshot",
    reconcile: (key, signal) => reconcileSnapshot(context, key, signal),
  });
  const content = (name: string) => caches.contents.get(name);
  const contentContext = { env, events, kind: boundSnapshotContents, content };
  const contentQueue = startWorkQueue(env, {
    ...queue,
    name: "snapshot-controller-content",
    reconcile: (name, signal) => reconcileBoundContent(contentContext, name, signal),
  });
  const snapshotsOf = (claimKey: string) => caches.snapshots.byIndex("bySourceClaim", claimKey);
  const claimContext = { env, claim: context.claim, snapshotsOf };
  const claimQueue = startWorkQueue(env, {
    ...queue,
    name: "snapshot-controller-claim",
    reconcile: (key, signal) => reconcileSourceClaim(claimContext, key, signal),
  });
  scope.own(snapshotQueue, contentQueue, claimQueue);
  const queues = { snapshotQueue, contentQueue, claimQueue };
  wakeForSnapshots(serving, queues);
  env.logger.info("serving VolumeSnapshots");
  return queues;
}

async function serveGroups(
  serving: Serving,
  queues: ReturnType<typeof serveSnapshots>,
  signal: AbortSignal,
): Promise<void> {
  const { env, informers, caches, events, scope, metrics, backoff, workers } = serving;
  const { volumeGroupSnapshots, volumeGroupSnapshotContents, volumeGroupSnapshotClasses } = snapshotResources;
  const kinds = [volumeGroupSnapshots, volumeGroupSnapshotContents, volumeGroupSnapshotClasses];
  await whenServed(env, kinds, groupKindsRemedy, signal);
  const groupCaches = await startGroupCaches(informers, signal);
  caches.groups = groupCaches;
  const context: GroupContext = {
    env,
    writes: new SubjectWrites(env, events, volumeGroupSnapshots),
    metrics,
    observe: (key) => observeGroup(caches, key),
    claims: () => caches.claims.list(),
    classes: () => groupCaches.classes.list(),
    lookAgainMs: backoff.maximumMs,
  };
  const queue = { workers, backoff };
  const groupQueue = startWorkQueue(env, {
    ...queue,
    name: "snapshot-controller-group-snapshot",
    reconcile: (key, passSignal) => reconcileGroup(context, key, passSignal),
  });
  const content = (name: string) => groupCaches.contents.get(name);
  const contentContext = { env, events, kind: boundGroupContents, content };
  const groupContentQueue = startWorkQueue(env, {
    ...queue,
    name: "snapshot-controller-group-content",
    reconcile: (name, passSignal) => reconcileBoundContent(contentContext, name, passSignal),
  });
  scope.own(groupQueue, groupContentQueue);
  wakeForGroups(serving, groupCaches, { ...queues, groupQueue, groupContentQueue });
  env.logger.info("serving VolumeGroupSnapshots");
}
