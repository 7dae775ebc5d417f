/** `longshore run attacher`: the flags of external-attacher. */
import type { AttacherOptions } from "@longshore/sidecars";
import { releaseGate } from "./common-flags.ts";
import { type ControllerValues, retryBackoff } from "./controller-sidecars.ts";
import { duration, type FlagValues, gates, obsolete, text, whole } from "./flag-table.ts";

/** Those of the attacher alone. */
export const attacherFlags = {
  timeout: duration("15s", "deadline of each call to the driver"),
  "worker-threads": whole(10, "attachments worked on at the same time", 1),
  resync: duration("10m", "every object is looked at again after this time"),
  "reconcile-sync": duration(
    "1m",
    "pause between comparisons with the driver's list of volumes, where it can list them",
  ),
  "max-entries": whole(0, "most entries of a page of that list; 0: the driver decides"),
  "default-fstype": text("type", "", "file system of volumes that name none"),
  "feature-gates": gates({
    ...releaseGate,
    MutableCSINodeAllocatableCount: {
      default: true,
      help: "without effect: the code of a failed attach is always stored, so that the scheduler learns of full nodes",
    },
  }),
  "max-grpc-log-length": obsolete("text", "calls are logged whole"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
} as const;

/** What they mean. */
export function attacherOptions(
  values: FlagValues<typeof attacherFlags>,
  common: ControllerValues,
): AttacherOptions {
  return {
    timeoutMs: values.timeout,
    workers: values["worker-threads"],
    resyncMs: values.resync,
    reconcileSyncMs: values["reconcile-sync"],
    maxEntries: values["max-entries"],
    defaultFsType: values["default-fstype"],
    backoff: retryBackoff(common),
    ...(common.compat === "reference" ? { compat: "reference" as const } : {}),
  };
}
