/** `longshore run migration-controller`: Gardener's CSI migration controller, its flags, and how it is put together. */
import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import { addFlagCommand, type ReadFlags } from "../sidecars/add-flag-command.ts";
import {
  httpFlags,
  kubeFlags,
  leaderElectionFlags,
  processFlags,
  releaseGate,
} from "../sidecars/common-flags.ts";
import { leaderHealth } from "../sidecars/controller-sidecars.ts";
import { duration, gates, labels, text, whole } from "../sidecars/flag-table.ts";
import {
  connectKube,
  leasePolicy,
  runSidecarProcess,
  type Shell,
  type Started,
} from "../sidecars/sidecar-process.ts";

/** All of its flags. */
export const migrationControllerFlags = {
  "provider-type": text("type", "", "provider type of the shoots, as in spec.provider.type; required"),
  "csi-migration-kubernetes-version": text(
    "version",
    "",
    "lowest Kubernetes version with which the migration begins, e.g. 1.18; required",
  ),
  "legacy-storage-classes": labels(
    "classes that are deleted from shoots while they have this provisioner, e.g. default:kubernetes.io/aws-ebs",
  ),
  "worker-threads": whole(5, "Clusters worked on at the same time", 1),
  "resync-period": duration("10m", "every Cluster is looked at again after this time"),
  "feature-gates": gates(releaseGate),
  ...kubeFlags,
  ...leaderElectionFlags,
  ...httpFlags,
  ...processFlags,
} as const;

/** Name of its Lease. */
const lease = "longshore-migration-controller";

const help = `
It follows the Clusters (extensions.gardener.cloud/v1alpha1) of one provider in a seed. Once a shoot has only nodes of the
version with which its migration begins, it deletes the shoot's legacy classes and annotates the Cluster with
csi-migration.extensions.gardener.cloud/needs-complete-feature-gates, for the provider's control-plane webhook.

Example:
  longshore run migration-controller --provider-type aws --csi-migration-kubernetes-version 1.18 \\
    --legacy-storage-classes default:kubernetes.io/aws-ebs --leader-election`;

/** Adds the verb. */
export function registerMigrationController(run: Command): void {
  addFlagCommand(run, "migration-controller", migrationControllerFlags, async (flags) => {
    await runSidecarProcess("migration-controller", migrationControllerFlags, flags, (shell) =>
      startFromFlags(shell, flags),
    );
  })
    .description("complete the migration of Gardener's shoots to CSI, one for a seed and a provider")
    .addHelpText("after", help);
}

/** Starts the controller as its flags say: under a lease, or alone. */
async function startFromFlags(
  shell: Shell,
  { values }: ReadFlags<typeof migrationControllerFlags>,
): Promise<Started> {
  const { addCSIMigrationController } = await import("@longshore/migration/gardener");
  const { sharedInformers, startUnderLease } = await import("@longshore/kube");
  const args = {
    type: required("provider-type", values["provider-type"]),
    csiMigrationKubernetesVersion: await aVersion(values["csi-migration-kubernetes-version"]),
    storageClassNameToLegacyProvisioner: values["legacy-storage-classes"],
    controllerOptions: { workers: values["worker-threads"], resyncMs: values["resync-period"] },
  };
  const access = await connectKube(shell, values);
  const env = { ...shell.env, kube: access.kube };
  const policy = leasePolicy(values, access, values["feature-gates"].ReleaseLeaderElectionOnExit);
  if (policy === undefined) {
    const controller = addCSIMigrationController(env, args);
    return { failed: new Promise(() => {}), stop: () => controller.stop() };
  }
  const informers = sharedInformers(env);
  shell.own(informers);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<Error>((resolve) => {
    fail = resolve;
  });
  const election = startUnderLease(env, policy, {
    // Controllers of several providers share a seed.
    lease: `${lease}-${args.type}`,
    serve: async (kube, _term, scope) => {
      scope.own(addCSIMigrationController({ ...env, kube, informers }, args));
    },
    onLost: () => fail(new Error("the migration controller lost its lease")),
    onFailed: (cause) => fail(new Error("the migration controller failed", { cause })),
  });
  shell.routes.set("/healthz/leader-election", async () => {
    const state = { isLeader: election.isLeader(), overdueMs: election.overdueMs() };
    return leaderHealth(new Map([["migration-controller", state]]));
  });
  return { failed, stop: () => election.stop() };
}

function required(flag: string, value: string): string {
  if (value === "") throw new UsageError(`--${flag} is required`);
  return value;
}

async function aVersion(given: string): Promise<string> {
  const { compareVersions, VersionError } = await import("@longshore/migration/gardener");
  const flag = "csi-migration-kubernetes-version";
  const version = required(flag, given);
  try {
    compareVersions(version, ">=", "1");
    return version;
  } catch (error) {
    if (error instanceof VersionError) throw new UsageError(`--${flag}: ${error.message}`);
    throw error;
  }
}
