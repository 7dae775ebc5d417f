/** How long operations on volumes take, and how they end. Source: docs/behaviour/node-agent.md 10, docs/behaviour/controllers.md A11. */
import type { RuntimeEnv } from "@longshore/runtime";

/** Buckets of `storage_operation_duration_seconds`, in seconds, as the reference has them. */
const operationBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Names of operations in metrics. */
export type MeasuredOperation =
  | "volume_attach"
  | "volume_detach"
  | "volume_provision"
  | "volume_delete"
  | "expand_volume"
  | "verify_controller_attached_volume"
  | "volume_mount"
  | "volume_unmount"
  | "unmount_device"
  | "map_volume"
  | "unmap_volume"
  | "unmap_device"
  | "volume_fs_resize";

/** What an operation was done to. */
interface MeasuredVolume {
  /** As `volumePluginLabel` says it. */
  readonly plugin: string;
  /** The volume is written for an in-tree plugin, and CSI serves it. */
  readonly isMigrated: boolean;
}

/** How an operation ended. */
export type OperationStatus = "success" | "fail-unknown";

/** Measures operations in `storage_operation_duration_seconds`, and counts them in the metrics that 1.20 has beside it. */
export interface StorageOperations {
  /** One that began at `startedAtMs` (monotonic, in milliseconds) has ended. */
  ended(
    operation: MeasuredOperation,
    volume: MeasuredVolume,
    startedAtMs: number,
    status: OperationStatus,
  ): void;
  /** Runs the operation and measures it. One that `signal` ended is not counted: its component stops. */
  measure<T>(
    operation: MeasuredOperation,
    volume: MeasuredVolume,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T>;
}

/** The operations of one component. */
export function storageOperations({ clock, meter }: Pick<RuntimeEnv, "clock" | "meter">): StorageOperations {
  const seconds = meter.histogram("storage_operation_duration_seconds", {
    help: "Storage operation duration",
    labels: ["volume_plugin", "operation_name", "status", "migrated"],
    buckets: operationBuckets,
  });
  const endings = meter.counter("storage_operation_status_count", {
    help: "Storage operation return statuses count",
    labels: ["volume_plugin", "operation_name", "status"],
  });
  const errors = meter.counter("storage_operation_errors_total", {
    help: "Storage operation errors",
    labels: ["volume_plugin", "operation_name"],
  });
  const ended: StorageOperations["ended"] = (operation, { plugin, isMigrated }, startedAtMs, status) => {
    const labels = { volume_plugin: plugin, operation_name: operation };
    const migrated = String(isMigrated);
    seconds.observe((clock.monotonicMs() - startedAtMs) / 1000, { ...labels, status, migrated });
    endings.add(1, { ...labels, status });
    if (status !== "success") errors.add(1, labels);
  };
  return {
    ended,
    async measure(operation, volume, signal, work) {
      const startedAtMs = clock.monotonicMs();
      try {
        const result = await work();
        ended(operation, volume, startedAtMs, "success");
        return result;
      } catch (error) {
        if (!signal.aborted) ended(operation, volume, startedAtMs, "fail-unknown");
        throw error;
      }
    },
  };
}
