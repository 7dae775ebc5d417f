/** The snapshotter: makes and deletes the snapshots of one driver, as VolumeSnapshotContents ask. Wires its parts together. */
import { createEventRecorder, startWorkQueue, trackWrites } from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { cachedSnapshotClasses, cachedSnapshotContents, resync } from "../common/caches.ts";
import type { SidecarEnv } from "../common/env.ts";
import { whenServed } from "../common/served-kinds.ts";
import { type Serve, type SidecarContext, type SidecarScope, startAlone } from "../common/sidecar.ts";
import { UnsupportedByDriverError } from "../common/unsupported.ts";
import { type ContentContext, reconcileContent } from "./content-reconciler.ts";
import { shouldEnqueueContent } from "./content-triggers.ts";

/** How the snapshotter works; the defaults are those of the reference (csi-snapshotter; sidecars.md §5). */
export interface SnapshotterOptions {
  /** Deadline of a CSI call, in milliseconds (`--timeout`); default 1 min. */
  readonly timeoutMs?: number;
  /** Delays after failures of one content, and between looks at a snapshot that is not ready (`--retry-interval-start`, `--retry-interval-max`); default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Contents worked on at the same time (`--worker-threads`); default 10. */
  readonly workers?: number;
  /** Every content is looked at again after this time, in milliseconds (`--resync-period`); default 15 min. */
  readonly resyncMs?: number;
  /** Before the uid in the names that the driver gets (`--snapshot-name-prefix`); default `snapshot`. */
  readonly snapshotNamePrefix?: string;
  /** Characters of the uid in those names (`--snapshot-name-uuid-length`); default −1, all of it. */
  readonly snapshotNameUuidLength?: number;
  /** The driver is told the names of the VolumeSnapshot and its content (`--extra-create-metadata`); default false. */
  readonly extraCreateMetadata?: boolean;
  /** Only snapshots of volumes that are local to this node (`--node-deployment`, with `NODE_NAME`); default all. */
  readonly nodeName?: string;
}

/** What an administrator does where the kinds of snapshots are missing. */
const remedy =
  "install the CustomResourceDefinitions of snapshots, which come with @longshore/storage (crds/)";

/** Starts the snapshotter of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startSnapshotter(env: SidecarEnv, options: SnapshotterOptions = {}): Component {
  return startAlone(env, "snapshotter", serveSnapshotContents, options);
}

/**
 * Serves the VolumeSnapshotContents of the driver; where their kind is not installed it waits for it in the background.
 * @throws UnsupportedByDriverError when the driver makes no snapshots
 */
export const serveSnapshotContents: Serve<SnapshotterOptions> = async (sidecar, options, scope) => {
  const { driver } = sidecar;
  if (!driver.capabilities.controller.has("CREATE_DELETE_SNAPSHOT")) {
    throw new UnsupportedByDriverError(
      `${driver.name} makes no snapshots (CREATE_DELETE_SNAPSHOT): leave the snapshotter out`,
    );
  }
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "snapshotter" });
  const context = { ...sidecar, env: { ...sidecar.env, logger } };
  scope.spawn(async (signal) => {
    const { volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
    await whenServed(context.env, [volumeSnapshotContents, volumeSnapshotClasses], remedy, signal);
    await serveContents(context, options, scope, signal);
  });
};

async function serveContents(
  { env, driver, informers }: SidecarContext,
  options: SnapshotterOptions,
  scope: SidecarScope,
  signal: AbortSignal,
): Promise<void> {
  const { backoff = { initialMs: 1000, maximumMs: 300_000 }, resyncMs = 900_000 } = options;
  const events = createEventRecorder(env, { component: `csi-snapshotter ${driver.name}` });
  scope.own(events);
  const contents = cachedSnapshotContents(informers, options.nodeName);
  const classes = cachedSnapshotClasses(informers);
  await Promise.all([contents.synced(signal), classes.synced(signal)]);
  const tracked = trackWrites(env, informers);
  const context: ContentContext = {
    env: tracked,
    kube: tracked.kube,
    driver,
    events,
    content: (name) => contents.get(name),
    classOf: (name) => classes.get(name),
    polls: new Map(),
    backoff,
    timeoutMs: options.timeoutMs ?? 60_000,
    snapshotNamePrefix: options.snapshotNamePrefix ?? "snapshot",
    snapshotNameUuidLength: options.snapshotNameUuidLength ?? -1,
    extraCreateMetadata: options.extraCreateMetadata ?? false,
  };
  const queue = startWorkQueue(tracked, {
    name: "csi-snapshotter-content",
    workers: options.workers ?? 10,
    backoff,
    reconcile: (name, passSignal) => reconcileContent(context, name, passSignal),
  });
  scope.own(queue);
  resync(env, scope, contents, resyncMs, (content) => queue.add(content.metadata.name, "background"));
  scope.onStop(
    contents.onChange({
      added: (content, { initial }) => queue.add(content.metadata.name, initial ? "background" : "fresh"),
      updated: (before, after) => {
        if (shouldEnqueueContent(before, after)) queue.add(after.metadata.name);
      },
      deleted: ({ metadata }) => {
        context.polls.delete(metadata.name);
        queue.forget(metadata.name);
      },
    }),
  );
  env.logger.info("serving VolumeSnapshotContents");
}
