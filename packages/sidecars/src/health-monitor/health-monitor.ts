/**
 * The health monitor: reports the conditions of volumes, as the driver states them, in events on their claims
 * (external-health-monitor, the controller of CSI's volume health). It writes only events.
 */
import { CsiCallError } from "@longshore/csi";
import {
  createEventRecorder,
  type EventRecorder,
  type Informer,
  type KubeClient,
  type PersistentVolume,
  resources,
} from "@longshore/kube";
import { type Component, periodically } from "@longshore/runtime";
import { cachedNodeConditions, cachedPodsUsingClaims, cachedVolumes } from "../common/caches.ts";
import type { Driver, SidecarEnv } from "../common/env.ts";
import { type Serve, startAlone } from "../common/sidecar.ts";
import { UnsupportedByDriverError } from "../common/unsupported.ts";
import {
  abnormalReason,
  healthEvent,
  listedHealth,
  type MonitoredVolume,
  monitoredVolume,
  normalReason,
  type VolumeHealth,
} from "./monitored-volume.ts";
import { watchNodes } from "./node-watcher.ts";
import { getHealth, listHealth, waysToAsk } from "./volume-conditions.ts";

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

/** What a round works with. */
interface MonitorContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "list">;
  /** UIDs of claims that were last reported as abnormal. */
  readonly abnormal: Set<string>;
  readonly timeoutMs: number;
  readonly workers: number;
}

/** Starts the health monitor of the driver behind `env.csi` alone; it waits for the driver in the background. */
export function startHealthMonitor(env: SidecarEnv, options: HealthMonitorOptions = {}): Component {
  return startAlone(env, "health monitor", serveVolumeHealth, { timeoutMs: 15_000, ...options });
}

/** Monitors the volumes of the driver. @throws UnsupportedByDriverError when the driver reports no conditions */
export const serveVolumeHealth: Serve<HealthMonitorOptions> = async (sidecar, options, scope) => {
  const { env, driver, informers } = sidecar;
  const { timeoutMs = 15_000, monitorIntervalMs = 60_000, listVolumesIntervalMs = 300_000 } = options;
  const way = waysToAsk(driver);
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
    watchNodes({ env: { ...env, logger }, driver, events, volumes, pods, nodes }, monitorIntervalMs, scope);
  } else {
    await informers.synced(scope.signal);
  }
  const context: MonitorContext = {
    env: { ...env, logger },
    driver,
    events,
    volumes,
    abnormal: await reportedAbnormal(env.kube, component, scope.signal).catch((error) => {
      if (scope.signal.aborted) throw error;
      logger.warn("what was reported earlier is not known: a recovery may go unreported", { error });
      return new Set<string>();
    }),
    timeoutMs,
    workers: options.workers ?? 10,
  };
  const periodMs = way === "list" ? listVolumesIntervalMs : monitorIntervalMs;
  const look = way === "list" ? lookAtList : lookAtEach;
  scope.spawn((signal) =>
    periodically(context.env, { name: "looking after volumes", periodMs }, signal, (s) => look(context, s)),
  );
  logger.info("looking after the health of volumes", { way });
};

async function lookAtList(context: MonitorContext, signal: AbortSignal): Promise<void> {
  const listed = await listHealth(context.driver, { signal, timeoutMs: context.timeoutMs });
  const monitored = monitoredVolumes(context);
  for (const volume of monitored) emitHealth(context, volume, listedHealth(volume.volumeHandle, listed));
}

/** Every volume once, so many at a time. The round ends at a driver that cannot be reached. */
async function lookAtEach(context: MonitorContext, signal: AbortSignal): Promise<void> {
  const left = monitoredVolumes(context)[Symbol.iterator]();
  const worker = async () => {
    for (const volume of { [Symbol.iterator]: () => left }) {
      try {
        emitHealth(
          context,
          volume,
          await getHealth(context.driver, volume.volumeHandle, { signal, timeoutMs: context.timeoutMs }),
        );
      } catch (error) {
        if (signal.aborted || !(error instanceof CsiCallError) || isUnreachable(error)) throw error;
        // The condition is unknown: report nothing; the next round asks again.
        context.env.logger.info("the condition of a volume cannot be had", {
          volume: volume.pvName,
          error,
        });
      }
    }
  };
  const workers = Array.from({ length: context.workers }, worker);
  const ends = await Promise.allSettled(workers);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

const isUnreachable = (error: CsiCallError) => !error.answered && error.code === "UNAVAILABLE";

function monitoredVolumes(context: MonitorContext): readonly MonitoredVolume[] {
  const monitored = context.volumes
    .list()
    .map((pv) => monitoredVolume(pv, context.driver.name))
    .filter((volume) => volume !== undefined);
  const present = new Set(monitored.map(({ claim }) => claim.uid));
  for (const uid of context.abnormal) if (!present.has(uid)) context.abnormal.delete(uid);
  return monitored;
}

function emitHealth(
  { events, abnormal }: MonitorContext,
  { claim }: MonitoredVolume,
  health: VolumeHealth | undefined,
): void {
  const uid = claim.uid ?? "";
  const event = healthEvent(health, abnormal.has(uid));
  if (event !== undefined) events.event(claim, event.type, event.reason, event.message);
  if (health?.abnormal === true) abnormal.add(uid);
  else if (health !== undefined) abnormal.delete(uid);
}

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
