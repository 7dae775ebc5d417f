/** `longshore run health-monitor`: the flags of external-health-monitor. */
import type { HealthMonitorOptions } from "@longshore/sidecars";
import { releaseGate } from "./common-flags.ts";
import type { ControllerValues } from "./controller-sidecars.ts";
import { duration, type FlagValues, gates, obsolete, toggle, whole } from "./flag-table.ts";

/** Those of the health monitor alone. */
export const healthMonitorFlags = {
  timeout: duration("15s", "deadline of each call to the driver"),
  "worker-threads": whole(10, "volumes asked about at the same time", 1),
  "monitor-interval": duration("1m", "pause between looks at each volume, where the driver cannot list them"),
  "list-volumes-interval": duration(
    "5m",
    "pause between looks at all volumes, where the driver can list them",
  ),
  "enable-node-watcher": toggle(false, "also reports claims whose pods are on a failed node"),
  "feature-gates": gates({ ...releaseGate }),
  resync: obsolete("text", "what is looked at comes from the watch"),
  "volume-list-add-interval": obsolete("text", "volumes are known from the watch"),
  "node-list-add-interval": obsolete("text", "nodes are known from the watch"),
} as const;

/** What they mean. */
export function healthMonitorOptions(
  values: FlagValues<typeof healthMonitorFlags>,
  _common: ControllerValues,
): HealthMonitorOptions {
  return {
    timeoutMs: values.timeout,
    workers: values["worker-threads"],
    monitorIntervalMs: values["monitor-interval"],
    listVolumesIntervalMs: values["list-volumes-interval"],
    enableNodeWatcher: values["enable-node-watcher"],
  };
}
