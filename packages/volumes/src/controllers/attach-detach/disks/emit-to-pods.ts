/** Events on the pods that wait for a volume. Source: docs/behaviour/controllers.md A7. */
import { specName } from "../../../framework/volume-spec.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import type { DesiredVolume } from "../desired-state.ts";

/** An attach has failed. @param part in the words of the event: what has failed */
export function emitAttachFailure(
  context: AttachDetachContext,
  volume: DesiredVolume,
  part: "Attach" | "NewAttacher",
  message: string,
): void {
  const text = `AttachVolume.${part} failed for volume "${specName(volume.spec)}" : ${message}`;
  emitToPods(context, volume, "Warning", "FailedAttachVolume", text);
}

/** An event for every pod that waits for the volume. */
export function emitToPods(
  context: AttachDetachContext,
  volume: DesiredVolume,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  for (const pod of volume.pods.values()) {
    context.events.event({ apiVersion: "v1", kind: "Pod", ...pod }, type, reason, message);
  }
}
