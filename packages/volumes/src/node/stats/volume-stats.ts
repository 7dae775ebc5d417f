/**
 * Measures the volumes that pods have, mounted or as devices, each once in a minute, and keeps what was measured last for metrics and for the
 * summary API. Source: docs/behaviour/node-agent.md 13.
 *
 * Invariants
 *  - A volume is measured once at a time; one whose measurement hangs is not measured beside it, and holds up no other
 *    for longer than the deadline.
 *  - What no pod has any more has no figures.
 */
import {
  type Controller,
  type EventRecorder,
  involvedObject,
  type Next,
  type Pass,
  type Pod,
  resources,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import { type Component, errorChain, type Host, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import {
  hasVolumeStats,
  isDeviceMountable,
  type VolumePlugin,
  type VolumeStats,
} from "../../framework/volume-plugin.ts";
import { isBlockSpec } from "../../framework/volume-spec.ts";
import type { VolumeUse } from "../volume-manager/volume-use.ts";
import {
  decideStatsStep,
  type MeasuredVolume,
  type ObservedStats,
  type StatsStep,
  statsPeriodMs,
} from "./decide-stats-step.ts";
import { type StatsClaim, type VolumeStatsMetrics, volumeStatsMetrics } from "./volume-stats-metrics.ts";
import { claimOf, type PodVolumeStats, volumeStatsSummary } from "./volume-stats-summary.ts";

const workers = 8;
/** Counting the files of a volume takes at most one part in so many of the time. */
const restFactor = 20;
/** One that hangs must not hold a worker for long: there are few. */
const measureTimeoutMs = 30_000;

/** What it works with. */
export interface VolumeStatsEnv extends RuntimeEnv {
  readonly host: Host;
  readonly events: Pick<EventRecorder, "event">;
  /** Who has the volume; undefined: no pod. */
  readonly volumeUse: (uniqueName: string) => VolumeUse | undefined;
  /** Called for each pod that has a volume which was measured. */
  readonly onMeasured?: ((volume: MeasuredPodVolume) => void) | undefined;
}

/** What was measured of a volume, for one pod that has it. */
export interface MeasuredPodVolume {
  readonly pod: Stored<Pod>;
  /** By the pod's spec. */
  readonly name: string;
  /** Undefined where nothing says so. */
  readonly usedBytes: number | undefined;
}

/** What is kept of a volume. */
interface Kept {
  readonly nextMs: number;
  readonly measured: MeasuredVolume | undefined;
  readonly claim: StatsClaim | undefined;
}

/** Runs from its construction until it is stopped. */
export class VolumeStatsCollector implements Component {
  readonly #env: VolumeStatsEnv;
  readonly #metrics: VolumeStatsMetrics;
  readonly #controller: Controller;
  readonly #kept = new Map<string, Kept>();
  readonly #running = new Set<string>();

  constructor(env: VolumeStatsEnv) {
    this.#env = env;
    this.#metrics = volumeStatsMetrics(env.meter);
    this.#controller = startController<ObservedStats, StatsStep>(env, {
      name: "node_volume_stats",
      sources: [],
      workers,
      backoff: { initialMs: statsPeriodMs, maximumMs: statsPeriodMs },
      observe: (uniqueName) => this.#observe(uniqueName),
      decide: decideStatsStep,
      actions: {
        forget: (_step, _observed, { key }) => this.#forget(key),
        measure: ({ use }, observed, pass) => this.#measure(use, observed, pass),
        report: ({ use, measured }, _observed, { key }) => this.#report(key, use, measured),
        wait: ({ ms }) => ({ requeueAfterMs: ms }),
      },
    });
  }

  stop(): Promise<void> {
    return this.#controller.stop();
  }

  /** The volume may have been mounted, mapped, or taken away. */
  wake(uniqueName: string): void {
    this.#controller.wake(uniqueName);
  }

  /** What was measured last, of volumes that pods have. */
  summary(): readonly PodVolumeStats[] {
    return volumeStatsSummary(
      [...this.#kept].flatMap(([uniqueName, { measured }]) => {
        const use = this.#env.volumeUse(uniqueName);
        return use === undefined || measured === undefined ? [] : [{ use, measured }];
      }),
    );
  }

  #observe(uniqueName: string): ObservedStats {
    return {
      nowMs: this.#env.clock.monotonicMs(),
      use: this.#env.volumeUse(uniqueName),
      nextMs: this.#kept.get(uniqueName)?.nextMs ?? 0,
      isHanging: this.#running.has(uniqueName),
      measured: undefined,
    };
  }

  #forget(uniqueName: string): Next<ObservedStats> {
    const claim = this.#kept.get(uniqueName)?.claim;
    if (claim !== undefined) this.#metrics.remove(claim);
    this.#kept.delete(uniqueName);
    return settled;
  }

  async #measure(
    use: VolumeUse,
    observed: ObservedStats,
    { key, signal }: Pass,
  ): Promise<Next<ObservedStats>> {
    const { clock, logger } = this.#env;
    const startMs = clock.monotonicMs();
    // Now, not when it is done: whatever becomes of it, the next one is a period away.
    this.#kept.set(key, { ...this.#keptOf(key), nextMs: startMs + statsPeriodMs });
    this.#running.add(key);
    try {
      const stats = await withDeadline(clock, measureTimeoutMs, signal, (statsSignal) => {
        const measurement = this.#statsOf(use, statsSignal);
        const ended = () => void this.#running.delete(key);
        measurement.then(ended, ended);
        return measurement;
      });
      const measured = stats === undefined ? "unknown" : { stats, time: clock.now().toISOString() };
      return { observed: { ...observed, measured } };
    } catch (error) {
      signal.throwIfAborted();
      logger.warn("a volume could not be measured", { volume: key, error: errorChain(error) });
      return { observed: { ...observed, measured: "unknown" } };
    } finally {
      const restMs = countsFiles(use.plugin) ? restFactor * (clock.monotonicMs() - startMs) : 0;
      if (restMs > statsPeriodMs) this.#kept.set(key, { ...this.#keptOf(key), nextMs: startMs + restMs });
    }
  }

  /** A mounted file system and a device are asked themselves, unless their plugin knows better. */
  async #statsOf(
    { plugin, deviceMountPath, users }: VolumeUse,
    signal: AbortSignal,
  ): Promise<VolumeStats | undefined> {
    const [{ spec, pod, path }] = users;
    if (hasVolumeStats(plugin)) return plugin.getVolumeStats(spec, pod, { path, deviceMountPath }, signal);
    if (isBlockSpec(spec)) return this.#sizeOf(path);
    if (!(plugin.supportsMetrics?.() ?? isDeviceMountable(plugin))) return undefined;
    const { totalBytes, availableBytes, totalInodes, availableInodes } = await this.#env.host.usage(path);
    const bytes = usage(totalBytes, availableBytes);
    return totalInodes === 0 ? { bytes } : { bytes, inodes: usage(totalInodes, availableInodes) };
  }

  /** @throws Error when there is no device: a size of another file would be a wrong figure */
  async #sizeOf(device: string): Promise<VolumeStats> {
    const stat = await this.#env.host.stat(device);
    if (stat?.kind === "blockDevice") return { bytes: { total: stat.sizeBytes } };
    throw new Error(`${device} is ${stat?.kind ?? "missing"}: a device must be bound there`);
  }

  #report(uniqueName: string, use: VolumeUse, measured: MeasuredVolume | "unknown"): Next<ObservedStats> {
    const before = this.#keptOf(uniqueName);
    const claim = claimOf(use);
    if (measured === "unknown") {
      if (claim !== undefined) this.#metrics.remove(claim);
      this.#kept.set(uniqueName, { ...before, measured: undefined, claim });
      return { requeueAfterMs: statsPeriodMs };
    }
    if (claim !== undefined) this.#metrics.set(claim, measured.stats);
    this.#emitCondition(use, before.measured?.stats.condition, measured.stats.condition);
    this.#kept.set(uniqueName, { ...before, measured, claim });
    for (const { pod, outerNames } of use.users) {
      const usedBytes = measured.stats.bytes?.used;
      for (const name of outerNames) this.#env.onMeasured?.({ pod, name, usedBytes });
    }
    return { requeueAfterMs: Math.max(0, before.nextMs - this.#env.clock.monotonicMs()) };
  }

  /** At each measurement while it is not well, so that the event does not expire; once when it is well again. */
  #emitCondition(
    { users }: VolumeUse,
    before: VolumeStats["condition"],
    after: VolumeStats["condition"],
  ): void {
    if (after?.abnormal !== true && before?.abnormal !== true) return;
    for (const { pod, outerNames } of users) {
      const subject = involvedObject(resources.pods, pod);
      const name = [...outerNames].join(", ");
      if (after?.abnormal === true) {
        const message = `Volume ${name}: ${after.message}`;
        this.#env.events.event(subject, "Warning", "VolumeConditionAbnormal", message);
      } else if (after !== undefined) {
        this.#env.events.event(subject, "Normal", "VolumeConditionNormal", `Volume ${name} is well again`);
      }
    }
  }

  #keptOf(uniqueName: string): Kept {
    return this.#kept.get(uniqueName) ?? { nextMs: 0, measured: undefined, claim: undefined };
  }
}

const countsFiles = (plugin: VolumePlugin) => hasVolumeStats(plugin) && plugin.countsFiles === true;

const usage = (total: number, available: number) => ({ total, available, used: total - available });
