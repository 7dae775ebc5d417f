/** Events on claims and volumes. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { PersistentVolumeContext } from "./context.ts";

/** An event on a claim. */
export function tell(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event({ ...claim, apiVersion: "v1", kind: "PersistentVolumeClaim" }, type, reason, message);
}

/** An event on a volume. */
export function tellVolume(
  context: PersistentVolumeContext,
  volume: Stored<PersistentVolume>,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  context.events.event({ ...volume, apiVersion: "v1", kind: "PersistentVolume" }, type, reason, message);
}
