/** The attacher: serves VolumeAttachments of one driver. Wires caches and controllers together. */
import {
  type ComponentScope,
  type Controller,
  createEventRecorder,
  forResource,
  type SharedInformers,
  type Source,
  startController,
  trackWrites,
} from "@longshore/kube";
import { type BackoffPolicy, type Component, periodically } from "@longshore/runtime";
import { cachedAttachments, cachedCsiNodes, cachedVolumes } from "../common/caches.ts";
import { attacherQueues, withQueueNames } from "../common/reference-queues.ts";
import { type Serve, type SidecarContext, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { announcedNodeIds } from "./announced-node-ids.ts";
import type { AttachCaches, AttachContext } from "./attach-context.ts";
import { attachRules } from "./attach-rules.ts";
import { attachSteps } from "./attach-steps.ts";
import { isOwnIntent, shouldEnqueue } from "./attach-triggers.ts";
import { attachGoal } from "./observed-attachment.ts";
import { contradicted, listPublished } from "./published-volumes.ts";
import { trivialAttachSteps } from "./trivial-attach-steps.ts";
import { volumeFinalizerSteps, volumeSources } from "./volume-finalizer-steps.ts";
import { VolumeReleases } from "./volume-releases.ts";

/** How the attacher works; the defaults are those of the reference (docs/behaviour/sidecars.md 3). */
export interface AttacherOptions {
  /** Deadline of a CSI call, in milliseconds; default 15 s. */
  readonly timeoutMs?: number;
  /** Delays after failures of one attachment; default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Attachments worked on at the same time; default 10. */
  readonly workers?: number;
  /** Every object is looked at again after this time, in milliseconds; default 10 min. */
  readonly resyncMs?: number;
  /** Pause between comparisons with the driver's list of volumes, in milliseconds; default 1 min. */
  readonly reconcileSyncMs?: number;
  /** Most entries of one page of that list; default 0, the driver decides. */
  readonly maxEntries?: number;
  /** File system of a volume that names none; default none. */
  readonly defaultFsType?: string;
  /** `reference`: no look at the deprecated annotation of a node that has no CSINode; queues have the reference's names. */
  readonly compat?: "reference";
}

/** Starts the attacher of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startAttacher(env: SidecarEnv, options: AttacherOptions = {}): Component {
  return startAlone(env, "attacher", serveAttachments, options);
}

/** Serves the VolumeAttachments of the driver. */
export const serveAttachments: Serve<AttacherOptions> = async (sidecar, options, scope) => {
  const { driver, informers } = sidecar;
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "attacher" });
  const caches = attachCaches(informers);
  const { meter: own } = sidecar.env;
  const meter = options.compat === "reference" ? withQueueNames(own, attacherQueues) : own;
  const context = attachContext(
    { ...sidecar, env: { ...sidecar.env, logger, meter } },
    caches,
    options,
    scope,
  );
  const { controller } = driver.capabilities;
  const attaches = controller.has("PUBLISH_UNPUBLISH_VOLUME");
  const attachments = startAttachments(context, caches, options, attaches);
  scope.own(attachments, startVolumes(context, caches, options));
  logger.info("serving VolumeAttachments", { attaches });
  if (!attaches || !controller.has("LIST_VOLUMES") || !controller.has("LIST_VOLUMES_PUBLISHED_NODES")) return;
  const { maxEntries = 0, reconcileSyncMs: periodMs = 60_000 } = options;
  const loop = { name: "comparing with the driver's list", periodMs };
  scope.spawn(async (signal) => {
    await Promise.all(Object.values(caches).map((cache) => cache.synced(signal)));
    await periodically(context.env, loop, signal, (within) =>
      compareWithDriver(context, attachments, maxEntries, within),
    );
  });
};

function attachCaches(informers: SharedInformers): AttachCaches {
  return {
    attachments: cachedAttachments(informers),
    volumes: cachedVolumes(informers),
    csiNodes: cachedCsiNodes(informers),
  };
}

function attachContext(
  { env, driver, informers }: SidecarContext,
  caches: AttachCaches,
  options: AttacherOptions,
  scope: ComponentScope,
): AttachContext {
  const events = createEventRecorder(env, { component: `external-attacher ${driver.name}` });
  scope.own(events);
  const asksNodes = options.compat !== "reference";
  return {
    ...caches,
    env: trackWrites(env, informers),
    driver,
    events,
    rules: attachRules(driver, options.defaultFsType ?? "", asksNodes),
    ...(asksNodes ? { announcedNodeId: announcedNodeIds(env, driver.name) } : {}),
    forced: new Set(),
    releases: new VolumeReleases(),
    timeoutMs: options.timeoutMs ?? 15_000,
  };
}

function startAttachments(
  context: AttachContext,
  caches: AttachCaches,
  options: AttacherOptions,
  attaches: boolean,
): Controller {
  const wiring = {
    name: "attacher-attachments",
    ...queueOptionsOf(options),
    sources: [attachmentSource(context, caches)],
    caches: Object.values(caches),
  };
  return attaches
    ? startController(context.env, { ...wiring, ...attachSteps(context) })
    : startController(context.env, { ...wiring, ...trivialAttachSteps(context) });
}

function startVolumes(context: AttachContext, caches: AttachCaches, options: AttacherOptions): Controller {
  return startController(context.env, {
    name: "attacher-volumes",
    ...queueOptionsOf(options),
    sources: volumeSources(context, caches),
    caches: [caches.attachments],
    ...volumeFinalizerSteps(context),
  });
}

function queueOptionsOf({
  workers = 10,
  resyncMs = 600_000,
  backoff = { initialMs: 1000, maximumMs: 300_000 },
}: AttacherOptions) {
  return { workers, resyncMs, backoff };
}

/** Which changes of an attachment wake it. */
function attachmentSource({ driver, forced, rules }: AttachContext, { attachments }: AttachCaches): Source {
  return forResource(attachments, {
    selects: (va) => va.spec?.attacher === driver.name,
    changed: (before, after) => {
      if (attachGoal(after, rules.finalizer, forced.has(after.metadata.name)) === "none") return false;
      return shouldEnqueue(before, after) && !isOwnIntent(before, after, rules.finalizer);
    },
  });
}

/** Has the call repeated for attachments that the driver's own list of volumes contradicts. */
async function compareWithDriver(
  context: AttachContext,
  queue: Pick<Controller, "wake">,
  maxEntries: number,
  signal: AbortSignal,
): Promise<void> {
  const { attachments, forced, timeoutMs } = context;
  const published = await listPublished(context, maxEntries, { signal, timeoutMs });
  for (const { metadata } of contradicted(context, attachments.list(), published)) {
    forced.add(metadata.name);
    queue.wake(metadata.name);
  }
}
