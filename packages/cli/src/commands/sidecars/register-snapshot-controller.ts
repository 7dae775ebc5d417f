/** `longshore run snapshot-controller`: its flags, and how it is put together. */
import type { Command } from "commander";
import { addFlagCommand, type ReadFlags } from "./add-flag-command.ts";
import {
  groupSnapshotGate,
  httpFlags,
  kubeFlags,
  leaderElectionFlags,
  processFlags,
  releaseGate,
  retryFlags,
} from "./common-flags.ts";
import { duration, gates, obsolete, toggle, whole } from "./flag-table.ts";
import { runSidecarProcess, type Shell, type Started } from "./sidecar-process.ts";
import { startElected } from "./start-elected.ts";

/** All of its flags. */
export const snapshotControllerFlags = {
  "worker-threads": whole(10, "objects of each kind worked on at the same time", 1),
  "resync-period": duration("15m", "every object is looked at again after this time"),
  "prevent-volume-mode-conversion": toggle(
    true,
    "contents record the mode of their volume, so that no volume of another mode is made from them",
  ),
  "enable-distributed-snapshotting": toggle(
    false,
    "snapshots of local volumes are left to the nodes' snapshotters",
  ),
  "feature-gates": gates({ ...releaseGate, ...groupSnapshotGate }),
  ...kubeFlags,
  ...leaderElectionFlags,
  ...retryFlags,
  ...httpFlags,
  "retry-crd-interval-max": obsolete("text", "kinds that are missing are waited for"),
  "create-snapshotcontent-retrycount": obsolete("text", "failures are retried like all others"),
  "create-snapshotcontent-interval": obsolete("text", "failures are retried like all others"),
  "enable-volume-group-snapshots": obsolete("switch", "use --feature-gates=CSIVolumeGroupSnapshot=true"),
  ...processFlags,
} as const;

/** Name of its Lease. */
const lease = "snapshot-controller-leader";

/** Adds the verb. */
export function registerSnapshotController(run: Command): void {
  addFlagCommand(run, "snapshot-controller", snapshotControllerFlags, async (flags) => {
    await runSidecarProcess("snapshot-controller", snapshotControllerFlags, flags, (shell) =>
      startFromFlags(shell, flags),
    );
  }).description("join VolumeSnapshots and their contents, one for the whole cluster");
}

/** Starts the controller as its flags say: under a lease, or alone. */
async function startFromFlags(
  shell: Shell,
  { values }: ReadFlags<typeof snapshotControllerFlags>,
): Promise<Started> {
  const { startSnapshotController } = await import("@longshore/sidecars/snapshot-controller");
  const { CSIVolumeGroupSnapshot: groupSnapshots } = values["feature-gates"];
  const options = {
    workers: values["worker-threads"],
    resyncMs: values["resync-period"],
    backoff: { initialMs: values["retry-interval-start"], maximumMs: values["retry-interval-max"] },
    preventVolumeModeConversion: values["prevent-volume-mode-conversion"],
    distributed: values["enable-distributed-snapshotting"],
    groupSnapshots,
  };
  return startElected(shell, values, {
    name: "snapshot-controller",
    lease,
    start: (env) => startSnapshotController(env, options),
  });
}
