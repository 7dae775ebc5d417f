/** The resizer: expands and modifies the volumes of one driver's claims. Wires its parts together. */
import {
  type ComponentScope,
  type Controller,
  createEventRecorder,
  type EventRecorder,
  startController,
  trackWrites,
} from "@longshore/kube";
import type { BackoffPolicy, Component } from "@longshore/runtime";
import { cachedClaims, cachedVolumes } from "../common/caches.ts";
import { resizerQueues, withQueueNames } from "../common/reference-queues.ts";
import { type Serve, type SidecarContext, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { ClaimMemory } from "./claim-memory.ts";
import { podUse } from "./pod-use.ts";
import type { ResizeContext } from "./resize-context.ts";
import { type ResizeCaches, resizeSources } from "./resize-sources.ts";
import { resizeSteps } from "./resize-steps.ts";
import { type ResizerKind, resizerKindOf } from "./resizer-kind.ts";
import { serveModifications } from "./serve-modifications.ts";

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
  /** `reference`: the queue has the reference's name. */
  readonly compat?: "reference";
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
  const { driver, informers } = sidecar;
  const { timeoutMs = 10_000 } = options;
  const kind = await resizerKindOf(driver, { signal: scope.signal, timeoutMs });
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "resizer" });
  const events = createEventRecorder(sidecar.env, { component: `external-resizer ${driver.name}` });
  scope.own(events);
  const { meter: own } = sidecar.env;
  const meter = options.compat === "reference" ? withQueueNames(own, resizerQueues(driver.name)) : own;
  const env = trackWrites({ ...sidecar.env, logger, meter }, informers);
  const serving = { ...sidecar, env, events };
  const caches = { claims: cachedClaims(informers), volumes: cachedVolumes(informers) };
  if (driver.capabilities.controller.has("MODIFY_VOLUME") && (options.volumeAttributesClass ?? true)) {
    const extraMetadata = options.extraModifyMetadata ?? false;
    serveModifications(serving, caches, { ...queueOptionsOf(options), timeoutMs, extraMetadata }, scope);
  }
  logger.info("serving claims to resize", { kind });
  if (kind !== "none") serveSizes(serving, caches, { ...options, kind, timeoutMs }, scope);
};

function queueOptionsOf(options: ResizerOptions) {
  const { workers = 10, resyncMs = 600_000, backoff = { initialMs: 1000, maximumMs: 300_000 } } = options;
  return { workers, resyncMs, backoff };
}

function serveSizes(
  { env, driver, informers, events }: SidecarContext & { readonly events: EventRecorder },
  caches: ResizeCaches,
  options: ResizerOptions & { readonly kind: ResizerKind; readonly timeoutMs: number },
  scope: ComponentScope,
): void {
  const pace = queueOptionsOf(options);
  const followsPods = options.handleVolumeInUseError ?? true;
  const context: ResizeContext = {
    ...caches,
    env,
    driver,
    events,
    memory: new ClaimMemory(),
    podUse: followsPods ? podUse(env, informers, scope, (key) => controller.wake(key)) : undefined,
    trivial: options.kind === "trivial",
    timeoutMs: options.timeoutMs,
    rules: {
      singleNodeMultiWriter: driver.capabilities.controller.has("SINGLE_NODE_MULTI_WRITER"),
      notesOldSize: options.annotateFsResize ?? false,
      followsPods,
      infeasibleRetryMs: pace.backoff.maximumMs,
    },
  };
  const controller: Controller = startController(env, {
    name: "resizer-claims",
    ...pace,
    sources: resizeSources(context, caches, (key, ms) => controller.wakeAfter(key, ms)),
    ...resizeSteps(context),
  });
  scope.own(controller);
}
