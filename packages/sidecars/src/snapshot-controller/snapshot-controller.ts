/**
 * The snapshot controller, one for a cluster: joins VolumeSnapshots and VolumeSnapshotContents. Wires its parts together.
 * The drivers' snapshotters do the rest.
 */
import {
  createEventRecorder,
  type KubeEnv,
  keyOf,
  nodeSelectorMatches,
  type PersistentVolumeClaim,
  type SharedInformers,
  type Stored,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import {
  snapshotGroup,
  snapshotResources,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import {
  cachedClaims,
  cachedNodes,
  cachedSnapshotClasses,
  cachedSnapshotContents,
  cachedSnapshots,
  resync,
} from "../common/caches.ts";
import { snapshotKindsRemedy, whenServed } from "../common/served-kinds.ts";
import { SidecarScope } from "../common/sidecar.ts";
import { contentNameOf } from "./binding.ts";
import { reconcileBoundContent } from "./bound-contents.ts";
import { SnapshotMetrics } from "./snapshot-metrics.ts";
import { reconcileSnapshot, type SnapshotContext } from "./snapshot-reconciler.ts";
import type { ObservedSnapshot } from "./snapshot-step.ts";
import { reconcileSourceClaim } from "./source-claims.ts";

/** How the snapshot controller works; the defaults are those of the reference (snapshot-controller; sidecars.md §5). */
export interface SnapshotControllerOptions {
  /** Delays after failures of one object (`--retry-interval-start`, `--retry-interval-max`); default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Objects of each kind worked on at the same time (`--worker-threads`); default 10. */
  readonly workers?: number;
  /** Every object is looked at again after this time, in milliseconds (`--resync-period`); default 15 min. */
  readonly resyncMs?: number;
  /** Contents tell the mode of their volume, so that none of another mode is made from them (`--prevent-volume-mode-conversion`); default true. */
  readonly preventVolumeModeConversion?: boolean;
  /** Snapshots of local volumes are left to the snapshotters of their nodes (`--enable-distributed-snapshotting`); default false. */
  readonly distributed?: boolean;
}

/** The seams of the snapshot controller; `informers` of a process that has some. */
export interface SnapshotControllerEnv extends KubeEnv {
  readonly informers?: SharedInformers;
}

/** Starts the snapshot controller. Where the kinds of snapshots are not installed, it waits for them and says so. */
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
    await serveSnapshots({ ...env, logger }, informers, options, scope, signal);
  });
  return scope;
}

async function serveSnapshots(
  env: KubeEnv,
  informers: SharedInformers,
  options: SnapshotControllerOptions,
  scope: SidecarScope,
  signal: AbortSignal,
): Promise<void> {
  const { backoff = { initialMs: 1000, maximumMs: 300_000 }, workers = 10, resyncMs = 900_000 } = options;
  const events = createEventRecorder(env, { component: "snapshot-controller" });
  scope.own(events);
  const snapshots = cachedSnapshots(informers);
  const contents = cachedSnapshotContents(informers);
  const classes = cachedSnapshotClasses(informers);
  const claims = cachedClaims(informers);
  const nodes = options.distributed === true ? cachedNodes(informers) : undefined;
  snapshots.addIndex("byContent", (snapshot) => present(contentNameOf(snapshot)));
  snapshots.addIndex("bySourceClaim", (snapshot) => present(sourceClaimKey(snapshot)));
  claims.addIndex("bySourceSnapshot", (claim) => present(sourceSnapshotKey(claim)));
  const caches = [snapshots, contents, classes, claims, ...(nodes === undefined ? [] : [nodes])];
  await Promise.all(caches.map((cache) => cache.synced(signal)));

  const tracked = trackWrites(env, informers);
  const metrics = new SnapshotMetrics(env);
  const observe = (key: string): ObservedSnapshot | undefined => {
    const snapshot = snapshots.get(key);
    if (snapshot === undefined) return undefined;
    const contentName = contentNameOf(snapshot);
    const className = snapshot.spec.volumeSnapshotClassName;
    return {
      snapshot,
      content: contentName === undefined ? undefined : contents.get(contentName),
      snapshotClass: className === undefined ? undefined : classes.get(className),
      isRestoring: claims.byIndex("bySourceSnapshot", key).some(isPending),
      group: undefined,
      groupName: undefined,
    };
  };
  const context: SnapshotContext = {
    env: tracked,
    events,
    metrics,
    observe,
    claim: (key) => claims.get(key),
    classes: () => classes.list(),
    managedBy: ({ pv }) => {
      const affinity = pv.spec?.nodeAffinity?.required;
      if (nodes === undefined || affinity === undefined) return undefined;
      return nodes.list().find((node) => nodeSelectorMatches(node, affinity))?.metadata.name;
    },
    settings: { preventVolumeModeConversion: options.preventVolumeModeConversion ?? true },
    lookAgainMs: backoff.maximumMs,
  };
  const snapshotQueue = startWorkQueue(tracked, {
    name: "snapshot-controller-snapshot",
    workers,
    backoff,
    reconcile: (key, passSignal) => reconcileSnapshot(context, key, passSignal),
  });
  const contentContext = { env: tracked, events, content: (name: string) => contents.get(name) };
  const contentQueue = startWorkQueue(tracked, {
    name: "snapshot-controller-content",
    workers,
    backoff,
    reconcile: (name, passSignal) => reconcileBoundContent(contentContext, name, passSignal),
  });
  const claimContext = {
    env: tracked,
    claim: context.claim,
    snapshotsOf: (claimKey: string) => snapshots.byIndex("bySourceClaim", claimKey),
  };
  const claimQueue = startWorkQueue(tracked, {
    name: "snapshot-controller-claim",
    workers,
    backoff,
    reconcile: (key, passSignal) => reconcileSourceClaim(claimContext, key, passSignal),
  });
  scope.own(snapshotQueue, contentQueue, claimQueue);
  resync(env, scope, snapshots, resyncMs, (snapshot) => snapshotQueue.add(keyOf(snapshot), "background"));
  resync(env, scope, contents, resyncMs, ({ metadata }) => contentQueue.add(metadata.name, "background"));

  const wakeSnapshots = (content: Stored<VolumeSnapshotContent>) => {
    for (const snapshot of snapshots.byIndex("byContent", content.metadata.name))
      snapshotQueue.add(keyOf(snapshot));
  };
  const wakeClaim = (snapshot: VolumeSnapshot) => {
    const key = sourceClaimKey(snapshot);
    if (key !== undefined) claimQueue.add(key);
  };
  scope.onStop(
    snapshots.onChange({
      added: (snapshot, { initial }) => snapshotQueue.add(keyOf(snapshot), initial ? "background" : "fresh"),
      updated: (_, snapshot) => {
        snapshotQueue.add(keyOf(snapshot));
        if (snapshot.status?.readyToUse === true) wakeClaim(snapshot);
      },
      deleted: (snapshot) => {
        metrics.deleted(snapshot);
        snapshotQueue.forget(keyOf(snapshot));
        wakeClaim(snapshot);
        const contentName = contentNameOf(snapshot);
        if (contentName !== undefined) contentQueue.add(contentName);
      },
    }),
    contents.onChange({
      added: (content, { initial }) => {
        contentQueue.add(content.metadata.name, initial ? "background" : "fresh");
        wakeSnapshots(content);
      },
      updated: (_, content) => {
        contentQueue.add(content.metadata.name);
        wakeSnapshots(content);
      },
      deleted: (content) => {
        contentQueue.forget(content.metadata.name);
        wakeSnapshots(content);
      },
    }),
    classes.onChange({
      added: ({ metadata }, { initial }) => {
        if (initial) return;
        for (const snapshot of snapshots.list()) {
          const { volumeSnapshotClassName: name = metadata.name } = snapshot.spec;
          if (name === metadata.name && snapshot.status?.readyToUse !== true)
            snapshotQueue.add(keyOf(snapshot));
        }
      },
    }),
    claims.onChange({
      added: (claim) => claimQueue.add(keyOf(claim), "background"),
      updated: (before, claim) => {
        const restored = sourceSnapshotKey(claim);
        if (restored !== undefined && isPending(before) && !isPending(claim)) snapshotQueue.add(restored);
        if (before.status?.phase === claim.status?.phase) return;
        // It was bound, so that snapshots of it can be made.
        for (const snapshot of snapshots.byIndex("bySourceClaim", keyOf(claim)))
          snapshotQueue.add(keyOf(snapshot));
      },
      deleted: (claim) => {
        const restored = sourceSnapshotKey(claim);
        if (restored !== undefined) snapshotQueue.add(restored);
      },
    }),
  );
  env.logger.info("serving VolumeSnapshots");
}

function present(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}

/** Key of the claim of which a snapshot is made. */
function sourceClaimKey({ metadata, spec }: VolumeSnapshot): string | undefined {
  const name = spec.source.persistentVolumeClaimName;
  return name ? `${metadata?.namespace ?? ""}/${name}` : undefined;
}

/** Key of the snapshot from which a claim's volume is made. */
function sourceSnapshotKey({ metadata, spec }: PersistentVolumeClaim): string | undefined {
  const source = spec?.dataSource ?? spec?.dataSourceRef;
  if (source?.kind !== "VolumeSnapshot" || source.apiGroup !== snapshotGroup) return undefined;
  const namespace = (spec?.dataSourceRef as { readonly namespace?: string } | undefined)?.namespace;
  return `${namespace ?? metadata?.namespace ?? ""}/${source.name}`;
}

/** Whether the volume of a claim is yet to be made. */
function isPending({ status }: PersistentVolumeClaim): boolean {
  return (status?.phase ?? "Pending") === "Pending";
}
