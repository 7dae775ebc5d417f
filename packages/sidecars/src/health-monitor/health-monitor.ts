/**
 * The health monitor: reports the conditions of volumes, as the driver states them, in events on their claims
 * (external-health-monitor, the controller of CSI's volume health). It writes only events.
 */
import { createEventRecorder, type KubeClient, resources } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { cachedNodeConditions, cachedPodsUsingClaims, cachedVolumes } from "../common/caches.ts";
import { type Serve, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { UnsupportedByDriverError } from "../common/unsupported-by-driver-error.ts";
import { abnormalReason, normalReason } from "./monitored-volume.ts";
import { startNodeWatcher } from "./node-watcher.ts";
import { healthSource } from "./volume-conditions.ts";
import { startVolumeHealth } from "./volume-health.ts";

/** How the health monitor works; the defaults are those of the reference. */
export interface HealthMonitorOptions {
  /** Deadline of a CSI call, in milliseconds (`--timeout`); default 15 s. */
  readonly timeoutMs?: number;
  /** Pause between looks at each volume with ControllerGetVolume, and at the nodes (`--monitor-interval`); default 1 min. */
  readonly monitorIntervalMs?: number;
  /** Pause between looks at all volumes with ListVolumes (`--list-volumes-interval`); default 5 min. */
  readonly listVolumesIntervalMs?: number;
  /** Volumes asked about at the same time (`--worker-threads`); default 10. */
  readonly workers?: number;
  /** Also reports claims whose pods are on a failed node (`--enable-node-watcher`); default false. */
  readonly enableNodeWatcher?: boolean;
}

/** Starts the health monitor of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startHealthMonitor(env: SidecarEnv, options: HealthMonitorOptions = {}): Component {
  return startAlone(env, "health monitor", serveVolumeHealth, { timeoutMs: 15_000, ...options });
}

/** Monitors the volumes of the driver. @throws UnsupportedByDriverError when the driver reports no conditions */
export const serveVolumeHealth: Serve<HealthMonitorOptions> = async (sidecar, options, scope) => {
  const { env, driver, informers } = sidecar;
  const { timeoutMs = 15_000, monitorIntervalMs = 60_000, listVolumesIntervalMs = 300_000 } = options;
  const way = healthSource(driver);
  if (way === undefined) {
    throw new UnsupportedByDriverError(
      `CSI driver ${driver.name} does not report the condition of volumes (VOLUME_CONDITION with LIST_VOLUMES or GET_VOLUME): run it without the health monitor`,
    );
  }
  const logger = env.logger.child({ driver: driver.name, sidecar: "health-monitor" });
  const component = `csi-pv-monitor-controller-${driver.name}`;
  const events = createEventRecorder(env, { component });
  scope.own(events);
  const volumes = cachedVolumes(informers);
  if (options.enableNodeWatcher) {
    const [pods, nodes] = [cachedPodsUsingClaims(informers), cachedNodeConditions(informers)];
    await informers.synced(scope.signal);
    const watched = { env: { ...env, logger }, driver, events, volumes, pods, nodes };
    scope.own(startNodeWatcher(watched, monitorIntervalMs));
  } else {
    await informers.synced(scope.signal);
  }
  const abnormal = await reportedAbnormal(env.kube, component, scope.signal).catch((error) => {
    if (scope.signal.aborted) throw error;
    logger.warn("cannot read earlier reports; a recovery may be missed", { error });
    return new Set<string>();
  });
  scope.own(
    startVolumeHealth({
      env: { ...env, logger },
      driver,
      events,
      volumes,
      abnormal,
      way,
      periodMs: way === "list" ? listVolumesIntervalMs : monitorIntervalMs,
      timeoutMs,
      workers: options.workers ?? 10,
    }),
  );
  logger.info("looking after the health of volumes", { way });
};

/** The claims of which an earlier run said last that their volume is abnormal: its events are the only memory. */
async function reportedAbnormal(
  kube: KubeClient,
  component: string,
  signal: AbortSignal,
): Promise<Set<string>> {
  const lastAt = new Map<string, { readonly abnormal: string; readonly normal: string }>();
  for (const reason of [abnormalReason, normalReason]) {
    const field = reason === abnormalReason ? "abnormal" : "normal";
    let next: string | undefined;
    do {
      const options = { signal, fieldSelector: `reason=${reason}`, limit: 500 };
      const page = await kube.list(
        resources.events,
        next === undefined ? options : { ...options, continue: next },
      );
      for (const { involvedObject, source, lastTimestamp } of page.items) {
        const { uid } = involvedObject;
        if (source?.component !== component || uid === undefined) continue;
        const known = lastAt.get(uid) ?? { abnormal: "", normal: "" };
        const at = lastTimestamp ?? "";
        if (at > known[field]) lastAt.set(uid, { ...known, [field]: at });
      }
      next = page.continue;
    } while (next !== undefined);
  }
  return new Set([...lastAt].filter(([, at]) => at.abnormal > at.normal).map(([uid]) => uid));
}
