/**
 * The snapshot controller, one for a cluster: joins VolumeSnapshots and VolumeSnapshotContents, and the same of groups.
 * Wires its parts together. The drivers' snapshotters do the rest.
 */
import {
  type ComponentScope,
  type Controller,
  type ControllerEnv,
  type ControllerScope,
  controllerScope,
  createEventRecorder,
  type Informer,
  type KubeEnv,
  type KubeObject,
  keyOf,
  nodeSelectorMatches,
  type SharedInformers,
  type Source,
  type Stored,
  source,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { snapshotResources, type VolumeGroupSnapshotContent } from "@longshore/storage";
import { groupKindsRemedy, snapshotKindsRemedy, whenServed } from "../common/served-kinds.ts";
import { contentNameOf } from "./binding.ts";
import { ContentCreations } from "./content-creations.ts";
import { startBoundContents } from "./contents/bound-content-controller.ts";
import { boundGroupContents, boundSnapshotContents } from "./contents/bound-kind.ts";
import { contentNameOfGroup } from "./group-binding.ts";
import { startGroups } from "./groups.ts";
import {
  driverHandleKey,
  type GroupCaches,
  type SnapshotCaches,
  startGroupCaches,
  startSnapshotCaches,
} from "./snapshot-caches.ts";
import { SnapshotMetrics } from "./snapshot-metrics.ts";
import { startSnapshots } from "./snapshots.ts";
import { startSourceClaims } from "./source-claims.ts";
import type { SourceVolume } from "./source-volume.ts";
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

/** The seams of the snapshot controller. */
export type SnapshotControllerEnv = ControllerEnv;

interface Serving {
  readonly env: KubeEnv;
  readonly informers: SharedInformers;
  readonly caches: SnapshotCaches;
  readonly events: ReturnType<typeof createEventRecorder>;
  readonly scope: ComponentScope;
  readonly metrics: SnapshotMetrics;
  readonly queue: { readonly backoff: BackoffPolicy; readonly workers: number };
  readonly resyncMs: number;
}

/**
 * Starts the snapshot controller. Where the kinds of snapshots are not installed, it waits for them and says so
 * (the reference ends after `--retry-crd-interval-max`).
 */
export function startSnapshotController(
  given: SnapshotControllerEnv,
  options: SnapshotControllerOptions = {},
): Component {
  const logger = given.logger.child({ controller: "snapshot-controller" });
  const own = controllerScope({ ...given, logger }, "the snapshot controller");
  own.scope.spawn((signal) => serve(own, options, signal));
  return own.scope;
}

async function serve(
  { scope, env }: ControllerScope<SnapshotControllerEnv>,
  options: SnapshotControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
  const kinds = [volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses];
  await whenServed(env, kinds, snapshotKindsRemedy, signal);
  const { informers } = env;
  const events = createEventRecorder(env, { component: "snapshot-controller" });
  scope.own(events);
  const { distributed = false, workers = 10, resyncMs = 900_000 } = options;
  const { backoff = { initialMs: 1000, maximumMs: 300_000 } } = options;
  const caches = await startSnapshotCaches(informers, { distributed }, signal);
  const metrics = new SnapshotMetrics(env);
  const queue = { workers, backoff };
  const serving = { env, informers, caches, events, scope, metrics, queue, resyncMs };
  const snapshots = serveSnapshots(serving, options);
  if (options.groupSnapshots === true) await serveGroups(serving, snapshots, signal);
}

/** Snapshots, their contents, and the claims of which they are made. Returns the controller of the snapshots. */
function serveSnapshots(serving: Serving, options: SnapshotControllerOptions): Controller {
  const { env, caches, events, scope, metrics, queue, resyncMs } = serving;
  const { snapshots, contents } = caches;
  const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;
  const creations = new ContentCreations(env, volumeSnapshots, volumeSnapshotContents);
  scope.onStop(
    snapshots.onChange({
      deleted({ metadata: { uid } }) {
        metrics.gone("Snapshot", uid);
        creations.forget(uid);
      },
    }),
  );
  const controller = startSnapshots(
    {
      env,
      metrics,
      writes: new SubjectWrites(env, events, volumeSnapshots),
      creations,
      classes: () => caches.classes.list(),
      managedBy: (volume) => nodeOf(caches, volume),
      settings: { preventVolumeModeConversion: options.preventVolumeModeConversion ?? true },
      lookAgainMs: queue.backoff.maximumMs,
    },
    caches,
    { ...queue, resyncMs },
  );
  const boundContents = startBoundContents(
    {
      env,
      events,
      contents,
      kind: boundSnapshotContents,
      wakes: deletionsOf(snapshots, (snapshot) => contentNameOf(snapshot)),
    },
    { ...queue, resyncMs, name: "snapshot-controller-content" },
  );
  scope.own(controller, boundContents, startSourceClaims(env, caches, queue));
  env.logger.info("serving VolumeSnapshots");
  return controller;
}

/** The node whose snapshotter looks after snapshots of the volume, where each node has its own. */
function nodeOf({ nodes }: SnapshotCaches, { pv }: SourceVolume): string | undefined {
  const affinity = pv.spec?.nodeAffinity?.required;
  if (nodes === undefined || affinity === undefined) return undefined;
  return nodes.list().find((node) => nodeSelectorMatches(node, affinity))?.metadata.name;
}

/** A content whose snapshot has gone is looked at. */
function deletionsOf<T extends KubeObject>(
  informer: Informer<T>,
  contentName: (object: Stored<T>) => string | undefined,
): Source {
  return source((wake) =>
    informer.onChange({
      deleted(object) {
        const name = contentName(object);
        if (name !== undefined) wake(name);
      },
    }),
  );
}

async function serveGroups(serving: Serving, snapshots: Controller, signal: AbortSignal): Promise<void> {
  const { env, informers, events, scope, metrics, queue, resyncMs } = serving;
  const { volumeGroupSnapshots, volumeGroupSnapshotContents, volumeGroupSnapshotClasses } = snapshotResources;
  const kinds = [volumeGroupSnapshots, volumeGroupSnapshotContents, volumeGroupSnapshotClasses];
  await whenServed(env, kinds, groupKindsRemedy, signal);
  const groups = await startGroupCaches(informers, signal);
  // The controller of the snapshots runs already, and reads this object in each pass.
  serving.caches.groups = groups;
  const caches = { ...serving.caches, groups };
  const creations = new ContentCreations(env, volumeGroupSnapshots, volumeGroupSnapshotContents);
  scope.onStop(
    groups.groups.onChange({
      deleted({ metadata: { uid } }) {
        metrics.gone("GroupSnapshot", uid);
        creations.forget(uid);
      },
    }),
    wakeMembers(caches, snapshots),
  );
  const controller = startGroups(
    {
      env,
      metrics,
      writes: new SubjectWrites(env, events, volumeGroupSnapshots),
      creations,
      claims: () => caches.claims.list(),
      classes: () => groups.classes.list(),
      lookAgainMs: queue.backoff.maximumMs,
    },
    caches,
    { ...queue, resyncMs },
  );
  const wakes = deletionsOf(groups.groups, contentNameOfGroup);
  const boundContents = startBoundContents(
    { env, events, contents: groups.contents, kind: boundGroupContents, wakes },
    { ...queue, resyncMs, name: "snapshot-controller-group-content" },
  );
  scope.own(controller, boundContents);
  env.logger.info("serving VolumeGroupSnapshots");
}

/** Members go once their group has gone; snapshots of which the driver says that they belong to a group learn its name. */
function wakeMembers(
  { snapshots, contents, groups }: SnapshotCaches & { readonly groups: GroupCaches },
  controller: Controller,
): () => void {
  const wakeOf = (groupContent: Stored<VolumeGroupSnapshotContent>) => {
    const { spec, status } = groupContent;
    const handle = driverHandleKey(spec.driver, status?.volumeGroupSnapshotHandle);
    for (const member of handle === undefined ? [] : contents.byIndex("byGroupHandle", handle)) {
      for (const snapshot of snapshots.byIndex("byContent", member.metadata.name)) {
        controller.wake(keyOf(snapshot));
      }
    }
  };
  const ends = [
    groups.groups.onChange({
      deleted(group) {
        for (const member of snapshots.byIndex("byGroup", keyOf(group))) controller.wake(keyOf(member));
      },
    }),
    groups.contents.onChange({
      added: wakeOf,
      updated: (_, groupContent) => wakeOf(groupContent),
      deleted: wakeOf,
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
