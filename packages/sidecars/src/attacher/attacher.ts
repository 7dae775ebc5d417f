/** The attacher: serves VolumeAttachments of one driver. Wires informers, queues and reconcilers together. */
import {
  createEventRecorder,
  type Informer,
  type PersistentVolume,
  type Priority,
  type Stored,
  startWorkQueue,
  trackWrites,
  type VolumeAttachment,
  type WorkQueue,
} from "@longshore/kube";
import { type BackoffPolicy, type Component, periodically } from "@longshore/runtime";
import { attacherFinalizer } from "@longshore/storage";
import { volumeNameOf } from "../common/attachments.ts";
import { cachedAttachments, cachedCsiNodes, cachedVolumes, resync } from "../common/caches.ts";
import type { SidecarEnv } from "../common/env.ts";
import { type Serve, type SidecarScope, startAlone } from "../common/sidecar.ts";
import { announcedNodeIds } from "./announced-node-id.ts";
import { type AttachContext, reconcileAttachment } from "./attach-reconciler.ts";
import { decideAttachStep } from "./attach-step.ts";
import { isOwnIntent, shouldEnqueue } from "./attach-triggers.ts";
import { contradicted, listPublished } from "./published-volumes.ts";
import { reconcileTrivially } from "./trivial-attacher.ts";
import { holdsInVain, reconcileVolumeFinalizer } from "./volume-finalizer.ts";

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
  /** `reference`: no look at the deprecated annotation of a node that has no CSINode. */
  readonly compat?: "reference";
}

/** Starts the attacher of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startAttacher(env: SidecarEnv, options: AttacherOptions = {}): Component {
  return startAlone(env, "attacher", serveAttachments, options);
}

/** Serves the VolumeAttachments of the driver. */
export const serveAttachments: Serve<AttacherOptions> = async (sidecar, options, scope) => {
  const { env, driver, informers } = sidecar;
  const {
    timeoutMs = 15_000,
    resyncMs = 600_000,
    backoff = { initialMs: 1000, maximumMs: 300_000 },
  } = options;
  const logger = env.logger.child({ driver: driver.name, sidecar: "attacher" });
  const events = createEventRecorder(env, { component: `external-attacher ${driver.name}` });
  scope.own(events);
  const attachments = cachedAttachments(informers);
  const volumes = cachedVolumes(informers);
  const csiNodes = cachedCsiNodes(informers);
  await informers.synced(scope.signal);

  const context: AttachContext & { attachmentsOf: (pvName: string) => readonly unknown[] } = {
    env: trackWrites({ ...env, logger }, informers),
    driver,
    events,
    attachments,
    volumes,
    csiNodes,
    ...(options.compat === "reference"
      ? {}
      : { announcedNodeId: announcedNodeIds({ ...env, logger }, driver.name) }),
    attachmentsOf: (pvName) => attachments.byIndex("byVolume", pvName),
    forced: new Set(),
    timeoutMs,
    defaultFsType: options.defaultFsType ?? "",
    finalizer: attacherFinalizer(driver.name),
  };
  const { controller } = driver.capabilities;
  const attaches = controller.has("PUBLISH_UNPUBLISH_VOLUME");
  const reconcile = attaches ? reconcileAttachment : reconcileTrivially;
  const workers = options.workers ?? 10;
  const attachQueue = startWorkQueue(context.env, {
    name: "attacher-attachments",
    workers,
    backoff,
    reconcile: (name, passSignal) => reconcile(context, name, passSignal),
  });
  const volumeQueue = startWorkQueue(context.env, {
    name: "attacher-volumes",
    workers,
    backoff,
    reconcile: (name, passSignal) => reconcileVolumeFinalizer(context, name, passSignal),
  });
  scope.own(attachQueue, volumeQueue);
  wake(context, attachQueue, volumeQueue, { attachments, volumes }, scope);
  resync(env, scope, attachments, resyncMs, (va) => {
    if (va.spec.attacher === driver.name) attachQueue.add(va.metadata.name, "background");
  });
  resync(env, scope, volumes, resyncMs, (pv) => {
    if (holdsInVain(pv, driver.name)) volumeQueue.add(pv.metadata.name, "background");
  });
  logger.info("serving VolumeAttachments", { attaches });

  if (attaches && controller.has("LIST_VOLUMES") && controller.has("LIST_VOLUMES_PUBLISHED_NODES")) {
    const periodMs = options.reconcileSyncMs ?? 60_000;
    scope.spawn((loopSignal) =>
      periodically(
        { ...env, logger },
        { name: "comparing with the driver's list", periodMs },
        loopSignal,
        async (s) => {
          const published = await listPublished(context, options.maxEntries ?? 0, { signal: s, timeoutMs });
          for (const va of contradicted(context, attachments.list(), published)) {
            context.forced.add(va.metadata.name);
            attachQueue.add(va.metadata.name);
          }
        },
      ),
    );
  }
};

/** Which changes of objects wake which key. */
function wake(
  { driver, finalizer, forced }: AttachContext,
  attachQueue: WorkQueue,
  volumeQueue: WorkQueue,
  informers: {
    readonly attachments: Informer<VolumeAttachment>;
    readonly volumes: Informer<PersistentVolume>;
  },
  scope: SidecarScope,
): void {
  const isOurs = (va: VolumeAttachment) => va.spec?.attacher === driver.name;
  // Most changes of most volumes are no reason for a pass.
  const lookAtVolume = (pv: Stored<PersistentVolume>, priority?: Priority) => {
    if (holdsInVain(pv, driver.name)) volumeQueue.add(pv.metadata.name, priority);
  };
  scope.onStop(
    informers.attachments.onChange({
      added: (va, { initial }) => {
        if (isOurs(va)) attachQueue.add(va.metadata.name, initial ? "background" : "fresh");
      },
      updated: (before, after) => {
        const { name } = after.metadata;
        if (!isOurs(after) || decideAttachStep(after, finalizer, forced.has(name)).kind === "none") return;
        if (shouldEnqueue(before, after) && !isOwnIntent(before, after, finalizer)) attachQueue.add(name);
      },
      deleted: (va) => {
        forced.delete(va.metadata.name);
        attachQueue.forget(va.metadata.name);
        const pvName = volumeNameOf(va);
        if (isOurs(va) && pvName !== undefined) volumeQueue.add(pvName);
      },
    }),
    informers.volumes.onChange({
      added: (pv, { initial }) => lookAtVolume(pv, initial ? "background" : "fresh"),
      updated: (_, pv) => lookAtVolume(pv),
      deleted: (pv) => volumeQueue.forget(pv.metadata.name),
    }),
  );
}
