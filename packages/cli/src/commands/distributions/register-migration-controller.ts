/** `longshore run migration-controller`: Gardener's CSI migration controller, its flags, and how it is put together. */
import { migrationControllerLease } from "@longshore/deployment";
import type { AddArgs } from "@longshore/migration/gardener";
import type { Command } from "commander";
import { addFlagCommand, type ReadFlags } from "../sidecars/add-flag-command.ts";
import {
  httpFlags,
  kubeFlags,
  leaderElectionFlags,
  processFlags,
  releaseGate,
} from "../sidecars/common-flags.ts";
import { duration, gates, labels, text, whole } from "../sidecars/flag-table.ts";
import { runSidecarProcess, type Shell, type Started } from "../sidecars/sidecar-process.ts";
import { startElected } from "../sidecars/start-elected.ts";
import { aVersion, required } from "./migration-controller-flags.ts";

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
  const args = await controllerArgs(values);
  return startElected(shell, values, {
    name: "migration-controller",
    lease: migrationControllerLease(args.type),
    start: (env) => addCSIMigrationController(env, args),
  });
}

type Values = ReadFlags<typeof migrationControllerFlags>["values"];
type ArgumentValues = Pick<
  Values,
  | "provider-type"
  | "csi-migration-kubernetes-version"
  | "legacy-storage-classes"
  | "worker-threads"
  | "resync-period"
>;

/** What the flags say. @throws UsageError naming the flag */
export async function controllerArgs(values: ArgumentValues): Promise<AddArgs> {
  return {
    type: required("provider-type", values["provider-type"]),
    csiMigrationKubernetesVersion: await aVersion(values["csi-migration-kubernetes-version"]),
    storageClassNameToLegacyProvisioner: values["legacy-storage-classes"],
    controllerOptions: { workers: values["worker-threads"], resyncMs: values["resync-period"] },
  };
}
