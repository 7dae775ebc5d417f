/**
 * What comes next for the figures of one volume. Source: docs/behaviour/node-agent.md 13.
 *
 *     had by a pod? ── no ──► forget
 *        └─ yes ─► measure, once in a minute ─► report
 */
import type { VolumeStats } from "../../framework/volume-plugin.ts";
import type { VolumeUse } from "../volume-manager/volume-use.ts";

/** A volume is measured this often, in milliseconds. */
export const statsPeriodMs = 60_000;

/** What was measured. */
export interface MeasuredVolume {
  readonly stats: VolumeStats;
  /** When it was measured: wall time, RFC 3339. */
  readonly time: string;
}

/** One volume as a pass sees it. */
export interface ObservedStats {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** Undefined: no pod has it. */
  readonly use: VolumeUse | undefined;
  /** When it is measured next, in monotonic milliseconds. */
  readonly nextMs: number;
  /** An earlier measurement has not ended, although its time is over: no other is begun beside it. */
  readonly isHanging: boolean;
  /** What this pass has measured: `unknown` when nothing knows. */
  readonly measured: MeasuredVolume | "unknown" | undefined;
}

/** What comes next. */
export type StatsStep =
  | { readonly step: "forget" }
  | { readonly step: "measure"; readonly use: VolumeUse }
  | { readonly step: "report"; readonly use: VolumeUse; readonly measured: MeasuredVolume | "unknown" }
  | { readonly step: "wait"; readonly ms: number };

/** Decides for a volume; pure. */
export function decideStatsStep({ nowMs, use, nextMs, isHanging, measured }: ObservedStats): StatsStep {
  if (use === undefined) return { step: "forget" };
  if (measured !== undefined) return { step: "report", use, measured };
  if (isHanging) return { step: "wait", ms: statsPeriodMs };
  if (nowMs < nextMs) return { step: "wait", ms: nextMs - nowMs };
  return { step: "measure", use };
}
