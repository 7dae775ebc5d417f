/** Looks at volumes in rounds and reports how they are in events on their claims. Key: the PersistentVolume's name. */
import { CsiCallError } from "@longshore/csi";
import {
  type Actions,
  type EventRecorder,
  type Informer,
  type Next,
  type Pass,
  type PersistentVolume,
  settled,
  source,
  startController,
} from "@longshore/kube";
import { type Component, type RuntimeEnv, stopAll } from "@longshore/runtime";
import type { Driver } from "../common/sidecar-env.ts";
import { decideHealthStep, type HealthStep, type ObservedHealth } from "./decide-health-step.ts";
import { HealthRounds } from "./health-rounds.ts";
import { listedHealth, monitoredVolume } from "./monitored-volume.ts";
import { getHealth, listHealth } from "./volume-conditions.ts";

/** What it works with. */
export interface VolumeHealthContext {
  readonly env: RuntimeEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get" | "list" | "synced">;
  /** UIDs of claims that were last reported as abnormal. */
  readonly abnormal: Set<string>;
  /** How the driver is asked. */
  readonly way: "list" | "get";
  /** Pause between two rounds, in milliseconds. */
  readonly periodMs: number;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** Volumes looked at at the same time. */
  readonly workers: number;
}

/** Looks at all volumes, round after round, until it is stopped. */
export function startVolumeHealth(context: VolumeHealthContext): Component {
  const { env, driver, way, volumes, periodMs, timeoutMs } = context;
  const rounds = new HealthRounds(env, {
    periodMs,
    ...(way === "list" && { list: (signal) => listHealth(driver, { signal, timeoutMs }) }),
    keys: () => monitoredKeys(context),
  });
  const controller = startController<ObservedHealth, HealthStep>(env, {
    name: "volume_health",
    workers: context.workers,
    caches: [volumes],
    sources: [
      source((wake) => {
        rounds.start(wake);
        return () => {};
      }),
    ],
    observe: (pvName) => observeHealth(context, rounds, pvName),
    decide: decideHealthStep,
    actions: healthActions(context, rounds),
  });
  return { stop: () => stopAll([rounds, controller]) };
}

/** The volumes of a round; claims that have none of them are forgotten. */
function monitoredKeys({ volumes, driver, abnormal }: VolumeHealthContext): readonly string[] {
  const monitored = volumes
    .list()
    .map((pv) => monitoredVolume(pv, driver.name))
    .filter((volume) => volume !== undefined);
  const present = new Set(monitored.map(({ claim }) => claim.uid));
  for (const uid of abnormal) if (!present.has(uid)) abnormal.delete(uid);
  return monitored.map(({ pvName }) => pvName);
}

function observeHealth(
  { volumes, driver, abnormal }: VolumeHealthContext,
  rounds: HealthRounds,
  pvName: string,
): ObservedHealth {
  const pv = volumes.get(pvName);
  const volume = pv === undefined ? undefined : monitoredVolume(pv, driver.name);
  const { listed } = rounds;
  return {
    volume,
    isRoundOver: rounds.isOver(pvName),
    heard: volume && listed && { health: listedHealth(volume.volumeHandle, listed) },
    wasAbnormal: abnormal.has(volume?.claim.uid ?? ""),
  };
}

function healthActions(
  context: VolumeHealthContext,
  rounds: HealthRounds,
): Actions<ObservedHealth, HealthStep> {
  const { events, abnormal } = context;
  const leave = ({ key }: Pass) => {
    rounds.done(key);
    return settled;
  };
  return {
    ask: ({ volumeHandle }, observed, pass) => ask(context, rounds, volumeHandle, observed, pass),
    reportAbnormal: ({ claim, event }, _observed, pass) => {
      events.event(claim, event.type, event.reason, event.message);
      abnormal.add(claim.uid ?? "");
      return leave(pass);
    },
    reportNormal: ({ claim, event }, _observed, pass) => {
      events.event(claim, event.type, event.reason, event.message);
      abnormal.delete(claim.uid ?? "");
      return leave(pass);
    },
    leave: (_step, _observed, pass) => leave(pass),
  };
}

/** Asks about one volume. A driver that cannot be reached ends the round; a failure it answers with is of this volume. */
async function ask(
  { env, driver, timeoutMs }: VolumeHealthContext,
  rounds: HealthRounds,
  volumeHandle: string,
  observed: ObservedHealth,
  { key, signal }: Pass,
): Promise<Next<ObservedHealth>> {
  try {
    const health = await getHealth(driver, volumeHandle, { signal, timeoutMs });
    return { observed: { ...observed, heard: { health } } };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof CsiCallError) || isUnreachable(error)) {
      rounds.fail(error);
      return { observed: { ...observed, isRoundOver: true } };
    }
    // The condition is unknown: report nothing; the next round asks again.
    env.logger.info("cannot get the condition of a volume", { volume: key, error });
    return { observed: { ...observed, heard: { health: undefined } } };
  }
}

const isUnreachable = (error: CsiCallError) => !error.answered && error.code === "UNAVAILABLE";
