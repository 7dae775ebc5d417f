/**
 * The snapshotter: makes and deletes the snapshots of one driver, as VolumeSnapshotContents and, where they are switched
 * on, VolumeGroupSnapshotContents ask. Wires its parts together.
 */
import {
  type ComponentScope,
  createEventRecorder,
  type EventRecorder,
  forResource,
  type Informer,
  source,
  startController,
  trackWrites,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import {
  cachedGroupSnapshotClasses,
  cachedGroupSnapshotContents,
  cachedSnapshotClasses,
  cachedSnapshotContents,
} from "../common/caches.ts";
import { groupKindsRemedy, snapshotKindsRemedy, whenServed } from "../common/served-kinds.ts";
import { type Serve, type SidecarContext, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { UnsupportedByDriverError } from "../common/unsupported-by-driver-error.ts";
import type { ContentTypes } from "./content-rules.ts";
import { type ContentContext, contentSteps } from "./content-steps.ts";
import { shouldEnqueueContent } from "./content-triggers.ts";
import { canLook } from "./driver-snapshots.ts";
import { makesGroups } from "./group-capability.ts";
import { type GroupTypes, groupCalls, groupRules } from "./group-rules.ts";
import { type SingleTypes, snapshotCalls, snapshotRules } from "./snapshot-rules.ts";

/** How the snapshotter works; the defaults are those of the reference (csi-snapshotter; docs/behaviour/sidecars.md 5). */
export interface SnapshotterOptions {
  /** Deadline of a CSI call, in milliseconds (`--timeout`); default 1 min. */
  readonly timeoutMs?: number;
  /**
   * Delays after failures of one content, and between looks at a snapshot that is not ready (`--retry-interval-start`,
   * `--retry-interval-max`); default 1 s to 5 min.
   */
  readonly backoff?: BackoffPolicy;
  /** Contents worked on at the same time (`--worker-threads`); default 10. */
  readonly workers?: number;
  /** Every content is looked at again after this time, in milliseconds (`--resync-period`); default 15 min. */
  readonly resyncMs?: number;
  /** Before the uid in the names that the driver gets (`--snapshot-name-prefix`); default `snapshot`. */
  readonly snapshotNamePrefix?: string;
  /** Characters of the uid in those names (`--snapshot-name-uuid-length`); default −1, all of it. */
  readonly snapshotNameUuidLength?: number;
  /** The same for groups (`--groupsnapshot-name-prefix`); default `groupsnapshot`. */
  readonly groupSnapshotNamePrefix?: string;
  /** The same for groups (`--groupsnapshot-name-uuid-length`); default −1. */
  readonly groupSnapshotNameUuidLength?: number;
  /** The driver receives the names of the VolumeSnapshot and its content (`--extra-create-metadata`); default false. */
  readonly extraCreateMetadata?: boolean;
  /** Only snapshots of volumes that are local to this node (`--node-deployment`, with `NODE_NAME`); default all. */
  readonly nodeName?: string;
  /** Group snapshots, too (`--feature-gates=CSIVolumeGroupSnapshot=true`); default false. */
  readonly groupSnapshots?: boolean;
}

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
  const env = { ...sidecar.env, logger };
  const events = createEventRecorder(env, { component: `csi-snapshotter ${driver.name}` });
  scope.own(events);
  const context = { ...sidecar, env, events, settings: settingsOf(options) };
  scope.spawn((signal) => serveSingle(context, options, scope, signal));
  if (options.groupSnapshots === true) {
    scope.spawn((signal) => serveGroups(context, options, scope, signal));
  }
};

interface ServingContext extends SidecarContext {
  readonly events: EventRecorder;
  readonly settings: ReturnType<typeof settingsOf>;
}

function settingsOf(options: SnapshotterOptions) {
  return {
    backoff: options.backoff ?? { initialMs: 1000, maximumMs: 300_000 },
    workers: options.workers ?? 10,
    resyncMs: options.resyncMs ?? 900_000,
    timeoutMs: options.timeoutMs ?? 60_000,
    extraCreateMetadata: options.extraCreateMetadata ?? false,
  };
}

async function serveSingle(
  serving: ServingContext,
  options: SnapshotterOptions,
  scope: ComponentScope,
  signal: AbortSignal,
): Promise<void> {
  const { env, driver, informers, settings } = serving;
  const { volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
  await whenServed(env, [volumeSnapshotContents, volumeSnapshotClasses], snapshotKindsRemedy, signal);
  const caches = {
    contents: cachedSnapshotContents(informers, options.nodeName),
    classes: cachedSnapshotClasses(informers),
  };
  const naming = {
    extraCreateMetadata: settings.extraCreateMetadata,
    snapshotNamePrefix: options.snapshotNamePrefix ?? "snapshot",
    snapshotNameUuidLength: options.snapshotNameUuidLength ?? -1,
  };
  const calls = { driver, timeoutMs: settings.timeoutMs };
  const work = {
    rules: snapshotRules(naming, canLook(driver)),
    calls: snapshotCalls(calls, (name) => caches.classes.get(name)),
  };
  serveContents<SingleTypes>(serving, caches, work, "csi-snapshotter-content", scope);
}

async function serveGroups(
  serving: ServingContext,
  options: SnapshotterOptions,
  scope: ComponentScope,
  signal: AbortSignal,
): Promise<void> {
  const { env, driver, informers, settings } = serving;
  if (!(await makesGroups(env, driver, settings, signal))) {
    env.logger.warn("the driver makes no group snapshots (CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT)");
    return;
  }
  const { volumeGroupSnapshotContents, volumeGroupSnapshotClasses } = snapshotResources;
  const kinds = [volumeGroupSnapshotContents, volumeGroupSnapshotClasses];
  await whenServed(env, kinds, groupKindsRemedy, signal);
  const caches = {
    contents: cachedGroupSnapshotContents(informers),
    classes: cachedGroupSnapshotClasses(informers),
  };
  const naming = {
    extraCreateMetadata: settings.extraCreateMetadata,
    groupSnapshotNamePrefix: options.groupSnapshotNamePrefix ?? "groupsnapshot",
    groupSnapshotNameUuidLength: options.groupSnapshotNameUuidLength ?? -1,
  };
  const calls = { driver, timeoutMs: settings.timeoutMs };
  const work = {
    rules: groupRules(naming),
    calls: groupCalls(calls, (name) => caches.classes.get(name)),
  };
  serveContents<GroupTypes>(serving, caches, work, "csi-snapshotter-groupsnapshotcontent", scope);
}

/** The caches for contents of one kind. */
interface ContentCaches<T extends ContentTypes> {
  readonly contents: Informer<T["content"]>;
  readonly classes: Informer<T["class"]>;
}

/** Does the work for the contents of one kind until `scope` is stopped. @param name names the queue in logs and metrics */
function serveContents<T extends ContentTypes>(
  { env, informers, events, settings }: ServingContext,
  { contents, classes }: ContentCaches<T>,
  work: Pick<ContentContext<T>, "rules" | "calls">,
  name: string,
  scope: ComponentScope,
): void {
  const { backoff, workers, resyncMs } = settings;
  const tracked = trackWrites(env, informers);
  const polls = new Map<string, number>();
  const context: ContentContext<T> = { ...work, env: tracked, events, contents, polls, backoff };
  const { beingCreatedAnnotation, resource } = work.rules.kind;
  const controller = startController(tracked, {
    name,
    workers,
    backoff,
    resyncMs,
    sources: [
      forResource(contents, {
        changed: (before, after) => shouldEnqueueContent(before, after, beingCreatedAnnotation),
        deleted: "forget",
      }),
      source(() => contents.onChange({ deleted: ({ metadata }) => polls.delete(metadata.name) })),
    ],
    caches: [classes],
    ...contentSteps(context),
  });
  scope.own(controller);
  env.logger.info(`serving ${resource.kind}s`);
}
