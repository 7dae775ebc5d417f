/**
 * Capacity tracking of the provisioner: waits for what it needs, then starts the controller (docs/behaviour/sidecars.md
 * 2.9).
 */
import { type ComponentScope, type FlowControl, type OwnerReference, resources } from "@longshore/kube";
import { type BackoffPolicy, backoffMs } from "@longshore/runtime";
import type { Segments } from "@longshore/storage";
import { cachedCapacities, cachedClasses, cachedCsiNodes, cachedNodes } from "../../common/caches.ts";
import type { SidecarContext } from "../../common/sidecar.ts";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import { type CapacityController, startCapacity } from "./capacity-controller.ts";
import { capacityOwner } from "./capacity-owner.ts";
import { driverNameLabel, managedBy, managedByLabel } from "./managed-by.ts";

/** How capacity is published (`--enable-capacity`). */
export interface CapacityOptions {
  /** Where the objects are: the provisioner's own namespace (environment `NAMESPACE`). */
  readonly namespace: string;
  /** The provisioner's pod (environment `POD_NAME`), from which the owner is found. */
  readonly podName?: string;
  /** How far above the pod the owner of the objects is (`--capacity-ownerref-level`); below 0: none. Default 1. */
  readonly ownerRefLevel?: number;
  /** Poll interval of the capacity (`--capacity-poll-interval`), in milliseconds; default 1 min. */
  readonly pollIntervalMs?: number;
  /** Capacity figures polled in parallel (`--capacity-threads`); default 1. */
  readonly threads?: number;
  /** Also for classes with immediate binding (`--capacity-for-immediate-binding`); default false. */
  readonly forImmediateBinding?: boolean;
  /**
   * How fast objects are written (`--kube-api-capacity-qps`, `--kube-api-capacity-burst`). The reference's default, one
   * a second, keeps the figures of a big cluster old for hours; default: as fast as the server takes them.
   */
  readonly writes?: FlowControl;
}

/** What the provisioner passes to capacity tracking. */
export interface CapacitySettings extends CapacityOptions {
  readonly env: SidecarEnv;
  readonly timeoutMs: number;
  readonly backoff: BackoffPolicy;
  /** The only node whose capacity is published, and its topology; undefined: one provisioner serves the cluster. */
  readonly node: { readonly name: string; readonly segments: Segments } | undefined;
}

/** Notifies capacity tracking, once it runs, of created or deleted volumes. */
export interface CapacityTracking {
  refresh(storageClassName: string): void;
}

/** The kind may come with an upgrade of the cluster. */
const RECHECK_MS = 5 * 60_000;
const lookBackoff: BackoffPolicy = { initialMs: 1000, maximumMs: 60_000 };

/** Starts tracking in `scope`, in the background: it begins once the API server has the kind and the owner is known. */
export function serveCapacity(
  { driver, informers }: Pick<SidecarContext, "driver" | "informers">,
  settings: CapacitySettings,
  scope: ComponentScope,
): CapacityTracking {
  const { env, node, namespace } = settings;
  let controller: CapacityController | undefined;
  if (!driver.capabilities.controller.has("GET_CAPACITY")) {
    env.logger.error("the driver cannot report its capacity (GET_CAPACITY): leave `capacity` out");
    return { refresh() {} };
  }
  const owner = managedBy(node?.name);
  scope.spawn(async (signal) => {
    await untilServed(env, signal);
    const ownerReference = await findOwner(settings, signal);
    const objects = cachedCapacities(informers, namespace, {
      [driverNameLabel]: driver.name,
      [managedByLabel]: owner,
    });
    const caches = {
      storageClasses: cachedClasses(informers),
      csiNodes: cachedCsiNodes(informers),
      nodes: cachedNodes(informers),
      objects,
    };
    for (const cache of Object.values(caches)) await cache.synced(signal);
    controller = startCapacity(
      {
        ...caches,
        env,
        driver,
        namespace,
        managedBy: owner,
        owner: ownerReference,
        fixedSegments: node?.segments,
        forImmediateBinding: settings.forImmediateBinding ?? false,
        pollIntervalMs: settings.pollIntervalMs ?? 60_000,
        timeoutMs: settings.timeoutMs,
        threads: settings.threads ?? 1,
        backoff: settings.backoff,
        writes: settings.writes,
      },
      scope,
    );
    env.logger.info("publishing the driver's capacity for schedulers", { namespace });
  });
  return { refresh: (storageClassName) => controller?.refresh(storageClassName) };
}

async function untilServed({ kube, clock, logger }: SidecarEnv, signal: AbortSignal): Promise<void> {
  for (let isReported = false; ; ) {
    const version = await kube
      .servedVersion(resources.csiStorageCapacities, { signal })
      .catch((error: unknown) => {
        if (signal.aborted) throw error;
        // A server that cannot be asked counts as one without the kind: both are asked again later.
        return undefined;
      });
    if (version !== undefined) return;
    if (!isReported) logger.warn("the API server has no CSIStorageCapacity: no capacity is published");
    isReported = true;
    await clock.sleep(RECHECK_MS, signal);
  }
}

async function findOwner(
  { env, podName, namespace, ownerRefLevel = 1 }: CapacitySettings,
  signal: AbortSignal,
): Promise<OwnerReference | undefined> {
  if (ownerRefLevel < 0) return undefined;
  for (let failures = 1; ; failures++) {
    try {
      return await capacityOwner(env.kube, { name: podName ?? "", namespace }, ownerRefLevel, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const retryInMs = backoffMs(lookBackoff, failures, env.random);
      env.logger.error("the owner of CSIStorageCapacity objects is not known", { error, retryInMs });
      await env.clock.sleep(retryInMs, signal);
    }
  }
}
