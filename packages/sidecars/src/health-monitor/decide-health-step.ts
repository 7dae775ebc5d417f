/**
 * What comes next for a volume in a round of the health monitor: each volume is looked at once.
 *
 *     (listed) ─┬─► reportAbnormal
 *     ask ──────┼─► reportNormal (only after an abnormal one)
 *               └─► leave: as before, nothing known, or the round is over
 */
import type { ObjectReference } from "@longshore/kube";
import {
  type HealthEvent,
  healthEvent,
  type MonitoredVolume,
  type VolumeHealth,
} from "./monitored-volume.ts";

/** A volume as a round sees it. */
export interface ObservedHealth {
  /** Undefined: it is not the driver's any more, or no claim has it. */
  readonly volume: MonitoredVolume | undefined;
  /** The driver is gone, or the volume was looked at. */
  readonly isRoundOver: boolean;
  /** What the driver has said in this round, `health` undefined: nothing of this volume; undefined: it was not asked. */
  readonly heard: { readonly health: VolumeHealth | undefined } | undefined;
  /** It was reported last as abnormal. */
  readonly wasAbnormal: boolean;
}

/** What comes next for a volume. */
export type HealthStep =
  | { readonly step: "ask"; readonly volumeHandle: string }
  | { readonly step: "reportAbnormal"; readonly claim: ObjectReference; readonly event: HealthEvent }
  | { readonly step: "reportNormal"; readonly claim: ObjectReference; readonly event: HealthEvent }
  | { readonly step: "leave" };

/** Decides for a volume; pure. */
export function decideHealthStep({ volume, isRoundOver, heard, wasAbnormal }: ObservedHealth): HealthStep {
  if (volume === undefined || isRoundOver) return { step: "leave" };
  const { claim, volumeHandle } = volume;
  if (heard === undefined) return { step: "ask", volumeHandle };
  const event = healthEvent(heard.health, wasAbnormal);
  if (event === undefined) return { step: "leave" };
  const step = event.type === "Warning" ? "reportAbnormal" : "reportNormal";
  return { step, claim, event };
}
