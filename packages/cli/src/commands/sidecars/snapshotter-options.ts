/** `longshore run snapshotter`: the flags of csi-snapshotter. */
import type { SnapshotterOptions } from "@longshore/sidecars";
import { UsageError } from "../../exit.ts";
import { groupSnapshotGate, releaseGate } from "./common-flags.ts";
import { type ControllerValues, nodeName, retryBackoff } from "./controller-sidecars.ts";
import { duration, type FlagValues, gates, obsolete, text, toggle, whole } from "./flag-table.ts";

/** Those of the snapshotter alone. */
export const snapshotterFlags = {
  timeout: duration("1m", "deadline of each call to the driver"),
  "worker-threads": whole(10, "snapshots worked on at the same time", 1),
  "resync-period": duration("15m", "every snapshot is looked at again after this time"),
  "snapshot-name-prefix": text("prefix", "snapshot", "snapshots are named after it and the object's UID"),
  "snapshot-name-uuid-length": whole(-1, "characters of the UID, without dashes; -1: all of it", -1),
  "groupsnapshot-name-prefix": text("prefix", "groupsnapshot", "name prefix of group snapshots"),
  "groupsnapshot-name-uuid-length": whole(
    -1,
    "UID characters in names of group snapshots; -1: all of it",
    -1,
  ),
  "extra-create-metadata": toggle(
    false,
    "passes the names of the objects that a snapshot is made for to the driver",
  ),
  "node-deployment": toggle(false, "runs on each node (NODE_NAME) and serves what belongs to it"),
  "feature-gates": gates({
    ...releaseGate,
    ...groupSnapshotGate,
  }),
  snapshotter: obsolete("text", "the driver says its name"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
  "create-snapshotcontent-retrycount": obsolete("text", "the snapshot controller makes contents"),
  "create-snapshotcontent-interval": obsolete("text", "the snapshot controller makes contents"),
  "enable-volume-group-snapshots": obsolete("switch", "use --feature-gates=CSIVolumeGroupSnapshot=true"),
} as const;

/** What they mean. */
export function snapshotterOptions(
  values: FlagValues<typeof snapshotterFlags>,
  common: ControllerValues,
): SnapshotterOptions {
  for (const flag of ["snapshot-name-prefix", "groupsnapshot-name-prefix"] as const) {
    if (values[flag] === "") throw new UsageError(`--${flag} must not be empty`);
  }
  return {
    timeoutMs: values.timeout,
    workers: values["worker-threads"],
    resyncMs: values["resync-period"],
    snapshotNamePrefix: values["snapshot-name-prefix"],
    snapshotNameUuidLength: values["snapshot-name-uuid-length"],
    groupSnapshotNamePrefix: values["groupsnapshot-name-prefix"],
    groupSnapshotNameUuidLength: values["groupsnapshot-name-uuid-length"],
    groupSnapshots: values["feature-gates"].CSIVolumeGroupSnapshot,
    extraCreateMetadata: values["extra-create-metadata"],
    ...(values["node-deployment"] ? { nodeName: nodeName() } : {}),
    backoff: retryBackoff(common),
  };
}
