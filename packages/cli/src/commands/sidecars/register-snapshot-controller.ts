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
import { leaderHealth } from "./controller-sidecars.ts";
import { duration, gates, obsolete, toggle, whole } from "./flag-table.ts";
import { connectKube, leasePolicy, runSidecarProcess, type Shell, type Started } from "./sidecar-process.ts";

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
  const { sharedInformers, startUnderLease } = await import("@longshore/kube");
  const { ReleaseLeaderElectionOnExit: releaseOnStop, CSIVolumeGroupSnapshot: groupSnapshots } =
    values["feature-gates"];
  const access = await connectKube(shell, values);
  const env = { ...shell.env, kube: access.kube };
  const options = {
    workers: values["worker-threads"],
    resyncMs: values["resync-period"],
    backoff: { initialMs: values["retry-interval-start"], maximumMs: values["retry-interval-max"] },
    preventVolumeModeConversion: values["prevent-volume-mode-conversion"],
    distributed: values["enable-distributed-snapshotting"],
    groupSnapshots,
  };
  const policy = leasePolicy(values, access, releaseOnStop);
  if (policy === undefined) {
    const controller = startSnapshotController(env, options);
    return { failed: new Promise(() => {}), stop: () => controller.stop() };
  }
  const informers = sharedInformers(env);
  shell.own(informers);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<Error>((resolve) => {
    fail = resolve;
  });
  const election = startUnderLease(env, policy, {
    lease,
    serve: async (kube, _term, scope) => {
      scope.own(startSnapshotController({ ...env, kube, informers }, options));
    },
    onLost: () => fail(new Error("the snapshot controller lost its lease")),
    onFailed: (cause) => fail(new Error("the snapshot controller failed", { cause })),
  });
  shell.routes.set("/healthz/leader-election", async () => {
    const state = { isLeader: election.isLeader(), overdueMs: election.overdueMs() };
    return leaderHealth(new Map([["snapshot-controller", state]]));
  });
  return { failed, stop: () => election.stop() };
}
