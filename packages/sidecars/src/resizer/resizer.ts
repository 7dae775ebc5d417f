/** The resizer: expands and modifies the volumes of one driver's claims. Wires its parts together. */
import {
  createEventRecorder,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  startWorkQueue,
  trackWrites,
  type WorkQueue,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import { cachedClaims, cachedVolumes, resync } from "../common/caches.ts";
import type { SidecarEnv } from "../common/env.ts";
import { type Serve, type SidecarContext, startAlone } from "../common/sidecar.ts";
import { ClaimMemory } from "./claim-memory.ts";
import { serveModifications } from "./modifier.ts";
import { podUse } from "./pod-use.ts";
import { type ResizeContext, reconcileResize } from "./resize-reconciler.ts";
import { wantsMore } from "./resize-step.ts";
import { shouldLook } from "./resize-triggers.ts";
import { resizerKindOf } from "./resizer-kind.ts";

/**
 * How long the expand controller has to name the resizer of an in-tree volume, in milliseconds. It does so at every
 * change of the request, even where the name is already set. The expand controller of Kubernetes 1.20 crashes when
 * another client writes in between.
 */
const HAND_OVER_MS = 1000;

/** How the resizer works; the defaults are those of the reference (docs/behaviour/sidecars.md 4). */
export interface ResizerOptions {
  /** Deadline of a CSI call, in milliseconds (`--timeout`); default 10 s. */
  readonly timeoutMs?: number;
  /** Delays after failures of one claim (`--retry-interval-start`, `--retry-interval-max`); default 1 s to 5 min. */
  readonly backoff?: BackoffPolicy;
  /** Claims worked on at the same time (`--workers`); default 10. */
  readonly workers?: number;
  /** Every claim is looked at again after this time, in milliseconds (`--resync-period`); default 10 min. */
  readonly resyncMs?: number;
  /** A volume that the driver will not expand in use is not tried again before its pods are gone (`--handle-volume-inuse-error`); default true. */
  readonly handleVolumeInUseError?: boolean;
  /** ControllerModifyVolume gets the names of claim and volume (`--extra-modify-metadata`); default false. */
  readonly extraModifyMetadata?: boolean;
  /** Volumes whose file system has yet to grow are annotated with their size before (gate `AnnotateFsResize`); default false. */
  readonly annotateFsResize?: boolean;
  /** Volumes are modified as their VolumeAttributesClass says (gate `VolumeAttributesClass`); default true. */
  readonly volumeAttributesClass?: boolean;
}

/** Starts the resizer of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startResizer(env: SidecarEnv, options: ResizerOptions = {}): Component {
  return startAlone(env, "resizer", serveResizes, options);
}

/**
 * Serves the claims of the driver that ask for a larger volume, or for other attributes of it.
 * @throws UnsupportedByDriverError where the driver can neither expand nor modify
 */
export const serveResizes: Serve<ResizerOptions> = async (sidecar, options, scope) => {
  const { env, driver, informers } = sidecar;
  const { timeoutMs = 10_000, resyncMs = 600_000, workers = 10 } = options;
  const { backoff = { initialMs: 1000, maximumMs: 300_000 } } = options;
  const kind = await resizerKindOf(driver, { signal: scope.signal, timeoutMs });
  const logger = env.logger.child({ driver: driver.name, sidecar: "resizer" });
  const events = createEventRecorder(env, { component: `external-resizer ${driver.name}` });
  scope.own(events);
  const claims = cachedClaims(informers);
  const volumes = cachedVolumes(informers);
  await informers.synced(scope.signal);

  const tracked = trackWrites({ ...env, logger }, informers);
  const shared = { env: tracked, kube: tracked.kube, timeoutMs, events, claims, volumes };
  const infeasibleRetryMs = backoff.maximumMs;
  if (driver.capabilities.controller.has("MODIFY_VOLUME") && (options.volumeAttributesClass ?? true)) {
    const extraMetadata = options.extraModifyMetadata ?? false;
    const pace = { workers, backoff, resyncMs, infeasibleRetryMs };
    serveModifications(sidecar, { ...shared, ...pace, extraMetadata }, scope);
  }
  logger.info("serving claims to resize", { kind });
  if (kind === "none") return;
  const memory = new ClaimMemory();
  const context: ResizeContext = {
    ...shared,
    driver,
    trivial: kind === "trivial",
    memory,
    podUse:
      (options.handleVolumeInUseError ?? true)
        ? podUse(tracked, informers, scope, (key) => resizeQueue.add(key))
        : undefined,
    infeasibleRetryMs,
    notesOldSize: options.annotateFsResize ?? false,
  };
  const resizeQueue: WorkQueue = startWorkQueue(tracked, {
    name: "resizer-claims",
    workers,
    backoff,
    reconcile: (key, passSignal) => reconcileResize(context, key, passSignal),
  });
  scope.own(resizeQueue);
  const isOfInterest = (claim: PersistentVolumeClaim) =>
    wantsMore(claim) || (context.notesOldSize && hasNote(volumes.get(claim.spec?.volumeName ?? "")));
  resync(env, scope, claims, resyncMs, (claim) => {
    if (isOfInterest(claim)) resizeQueue.add(keyOf(claim), "background");
  });
  scope.onStop(
    claims.onChange({
      added: (claim, { initial }) => {
        if (isOfInterest(claim)) resizeQueue.add(keyOf(claim), initial ? "background" : "fresh");
      },
      updated: (before, after) => {
        const mayEndNote = context.notesOldSize && capacityOf(before) !== capacityOf(after);
        if (!mayEndNote && !shouldLook(before, after)) return;
        const isInTree = !volumes.get(after.spec?.volumeName ?? "")?.spec?.csi;
        if (isInTree) resizeQueue.addAfter(keyOf(after), HAND_OVER_MS);
        else resizeQueue.add(keyOf(after));
      },
      deleted: (claim) => {
        memory.forget(claim.metadata.uid);
        resizeQueue.forget(keyOf(claim));
      },
    }),
  );
  wakeByVolumes(sidecar, context, resizeQueue, scope);
};

const hasNote = (volume: PersistentVolume | undefined) =>
  volume?.metadata?.annotations?.[preResizeCapacityAnnotation] !== undefined;

const capacityOf = (claim: PersistentVolumeClaim) => claim.status?.capacity?.storage;

/** A volume that is bound, or known, only after its claim asked for more. */
function wakeByVolumes(
  { informers }: SidecarContext,
  { claims }: ResizeContext,
  queue: WorkQueue,
  scope: Parameters<typeof serveResizes>[2],
): void {
  const wake = (volume: PersistentVolume) => {
    const { namespace = "", name = "" } = volume.spec?.claimRef ?? {};
    const key = `${namespace}/${name}`;
    const claim = claims.get(key);
    if (claim !== undefined && wantsMore(claim)) queue.add(key);
  };
  scope.onStop(
    cachedVolumes(informers).onChange({
      added: (volume, { initial }) => {
        if (!initial) wake(volume); // The claims themselves are queued at the start anyway.
      },
      updated: (before, after) => {
        if (before.spec?.claimRef?.uid !== after.spec?.claimRef?.uid) wake(after);
      },
    }),
  );
}
