/** Events on claims and volumes. */
import type { EventRecorder, PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";

/** An event that is due. */
export interface Report {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

type Events = Pick<EventRecorder, "event">;

/** Emits an event on a claim. */
export function reportOnClaim(events: Events, claim: Stored<PersistentVolumeClaim>, report: Report): void {
  const subject = { ...claim, apiVersion: "v1", kind: "PersistentVolumeClaim" };
  events.event(subject, report.type, report.reason, report.message);
}

/** Emits an event on a volume. */
export function reportOnVolume(events: Events, volume: Stored<PersistentVolume>, report: Report): void {
  const subject = { ...volume, apiVersion: "v1", kind: "PersistentVolume" };
  events.event(subject, report.type, report.reason, report.message);
}
