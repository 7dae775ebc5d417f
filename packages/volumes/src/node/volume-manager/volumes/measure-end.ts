/** How long what is done to a volume took, by the names of the reference. Source: docs/behaviour/node-agent.md 10. */
import type { MeasuredOperation, OperationStatus } from "../../../metrics/storage-operations.ts";
import { volumePluginLabel } from "../../../metrics/volume-plugin-label.ts";
import type { FailedOperation, ObservedVolume } from "./decide-volume-step.ts";
import type { VolumeActionsEnv } from "./volume-actions-env.ts";

/**
 * An operation on the volume has ended. It began with the observation: what follows that in one pass, such as all steps
 * of a mount, is one operation.
 */
export function measureEnd(
  { measured }: Pick<VolumeActionsEnv, "measured">,
  { desired, actual, nowMs }: ObservedVolume,
  operation: MeasuredOperation,
  status: OperationStatus,
): void {
  const plugin = (desired ?? actual)?.plugin;
  const [pod] = desired?.pods.values() ?? [];
  // A pod's spec says whether it was translated; one found on disk does not.
  const spec = pod?.spec ?? actual?.spec;
  if (plugin === undefined || spec === undefined) return;
  const volume = {
    plugin: volumePluginLabel(plugin.pluginName, spec),
    isMigrated: spec.isMigrated === true,
  };
  measured.ended(operation, volume, nowMs, status);
}

/** Setting up again what is mounted is a mount to the reference. */
export function operationInMetrics(operation: FailedOperation["operation"]): MeasuredOperation {
  return operation === "volume_republish" ? "volume_mount" : operation;
}
