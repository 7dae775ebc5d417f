/** `longshore run feature-gate-operator`: OpenShift's readers of the FeatureGate, its flags, and how it is put together. */
import { featureGateOperatorLease } from "@longshore/deployment";
import type { FeatureGateOperatorArgs } from "@longshore/migration/openshift";
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
import { choice, duration, gates, text } from "../sidecars/flag-table.ts";
import { runSidecarProcess, type Shell, type Started } from "../sidecars/sidecar-process.ts";
import { startElected } from "../sidecars/start-elected.ts";

/** All of its flags. */
export const featureGateOperatorFlags = {
  kubernetes: text(
    "version",
    "",
    "version of Kubernetes of the release, e.g. 1.21: its gates are known; required",
  ),
  order: choice(
    ["any", "two-sets"],
    "any",
    "any: the attach/detach controller is forced; two-sets: it is not",
  ),
  plugins: text(
    "names",
    "kubernetes.io/aws-ebs,kubernetes.io/cinder",
    "in-tree plugins that the sets CSIMigration and TechPreviewNoUpgrade carry to CSI",
  ),
  "resync-period": duration("10m", "all is looked at again after this time"),
  "feature-gates": gates(releaseGate),
  ...kubeFlags,
  ...leaderElectionFlags,
  ...httpFlags,
  ...processFlags,
} as const;

const help = `
It follows the FeatureGate "cluster" (config.openshift.io/v1), gives the API server, the controller manager, the scheduler and
the kubelets the gates of the selected set, and reports on the ClusterOperator longshore-feature-gates.

Example:
  longshore run feature-gate-operator --kubernetes 1.21 --leader-election`;

/** Adds the verb. */
export function registerFeatureGateOperator(run: Command): void {
  addFlagCommand(run, "feature-gate-operator", featureGateOperatorFlags, async (flags) => {
    await runSidecarProcess("feature-gate-operator", featureGateOperatorFlags, flags, (shell) =>
      startFromFlags(shell, flags),
    );
  })
    .description("give an OpenShift cluster's components the feature gates of its FeatureGate")
    .addHelpText("after", help);
}

/** Starts the operator as its flags say: under a lease, or alone. */
async function startFromFlags(
  shell: Shell,
  { values }: ReadFlags<typeof featureGateOperatorFlags>,
): Promise<Started> {
  const { startFeatureGateOperator } = await import("@longshore/migration/openshift");
  const args = await operatorArgs(values);
  return startElected(shell, values, {
    name: "feature-gate-operator",
    lease: featureGateOperatorLease,
    start: (env) => startFeatureGateOperator(env, args),
  });
}

type Values = ReadFlags<typeof featureGateOperatorFlags>["values"];

/** What the operator is given. @throws UsageError naming the flag */
export async function operatorArgs(
  values: Pick<Values, "kubernetes" | "order" | "plugins" | "resync-period">,
): Promise<FeatureGateOperatorArgs> {
  return {
    order: values.order === "two-sets" ? "two-sets" : "any",
    knownGates: await gatesOfRelease(values.kubernetes),
    plugins: await pluginNames(values.plugins),
    resyncMs: values["resync-period"],
  };
}

/** The migration gates that the version has; those of other versions it would refuse. */
async function gatesOfRelease(version: string): Promise<FeatureGateOperatorArgs["knownGates"]> {
  if (version === "") throw new UsageError("--kubernetes is required");
  const { gateTable } = await import("@longshore/volumes");
  const { FeatureGateError } = await import("@longshore/runtime");
  try {
    const rows = gateTable(version).flatMap(({ gate, stage, default: value, locked }) =>
      stage === "notYet" || stage === "removed" || stage === "ownOnly"
        ? []
        : [[gate, { default: value, stage, locked }] as const],
    );
    return Object.fromEntries(rows);
  } catch (error) {
    if (error instanceof FeatureGateError) throw new UsageError(`--kubernetes: ${error.message}`);
    throw error;
  }
}

async function pluginNames(given: string): Promise<readonly string[]> {
  const { migrationGates } = await import("@longshore/translation");
  const known = migrationGates.map(({ inTreeName }) => inTreeName);
  const names = given.split(",").filter((name) => name !== "");
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new UsageError(`--plugins: "${unknown}" is no plugin that migrates: choose of ${known.join(", ")}`);
}
