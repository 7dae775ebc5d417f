/** `longshore deploy …`: the controllers of distributions as manifests or as a chart. */
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  DeployOptionError,
  type DistributionOptions,
  type DistributionPlan,
  planDistribution,
  renderDistribution,
  renderDistributionChart,
  yamlText,
} from "@longshore/deployment";
import { type Command, Option } from "commander";
import { UsageError } from "../../exit.ts";
import { inFlags } from "../../field-flags.ts";
import { wholeNumber } from "../../flags.ts";
import { writeFiles } from "../write-files.ts";
import { aVersion, legacyClasses } from "./migration-controller-flags.ts";
import { operatorArgs } from "./register-feature-gate-operator.ts";

interface CommonFlags {
  readonly namespace: string;
  readonly createNamespace: boolean;
  readonly image?: string;
  readonly replicas: string;
  readonly kubernetesVersion?: string;
  readonly crds?: true;
  readonly output: "yaml" | "helm";
  readonly outputDir?: string;
  readonly force?: true;
}

interface OperatorFlags extends CommonFlags {
  readonly kubernetes: string;
  readonly order: "any" | "two-sets";
  readonly plugins: string;
}

interface ControllerFlags extends CommonFlags {
  readonly providerType: string;
  readonly csiMigrationKubernetesVersion: string;
  readonly legacyStorageClasses: string;
}

const help = (example: string) => `
What is rendered: an account, a role whose rules say why, and a Deployment with leader election, a probe of it, and metrics
at /metrics of port 8080.

Example:
  longshore deploy ${example} | kubectl apply -f -
  longshore deploy ${example} -o helm --output-dir chart`;

/** Adds the verb with those below it. */
export function registerDeployCommand(program: Command): void {
  const deploy = program
    .command("deploy")
    .description("render the deployment of a distribution's controller");
  addCommonFlags(
    deploy
      .command("feature-gate-operator")
      .description("OpenShift: the operator that gives components the gates of the FeatureGate")
      .requiredOption("--kubernetes <version>", "version of Kubernetes of the release, e.g. 1.21")
      .addOption(
        new Option("--order <order>", "any: the attach/detach controller is forced; two-sets: it is not")
          .choices(["any", "two-sets"])
          .default("any"),
      )
      .option(
        "--plugins <names>",
        "in-tree plugins that the sets carry to CSI",
        "kubernetes.io/aws-ebs,kubernetes.io/cinder",
      ),
  )
    .addHelpText("after", help("feature-gate-operator --kubernetes 1.21"))
    .action(async (flags: OperatorFlags) => {
      const { plugins, order } = await operatorArgs({ ...flags, "resync-period": 0 });
      const { kubernetes } = flags;
      await write(
        flags,
        planOf({ ...commonOptions(flags), controller: "feature-gate-operator", kubernetes, order, plugins }),
        (await import("@longshore/migration/openshift")).openshiftCrdsUrl,
      );
    });
  addCommonFlags(
    deploy
      .command("migration-controller")
      .description("Gardener: the controller that completes the migration of shoots")
      .requiredOption("--provider-type <type>", "provider type of the shoots, as in spec.provider.type")
      .requiredOption("--csi-migration-kubernetes-version <version>", "the version with which it begins")
      .option("--legacy-storage-classes <classes>", "NAME:PROVISIONER,…: classes that are deleted", ""),
  )
    .addHelpText(
      "after",
      help("migration-controller --provider-type aws --csi-migration-kubernetes-version 1.18"),
    )
    .action(async (flags: ControllerFlags) => {
      const options: DistributionOptions = {
        ...commonOptions(flags),
        controller: "migration-controller",
        providerType: flags.providerType,
        csiMigrationKubernetesVersion: await aVersion(flags.csiMigrationKubernetesVersion),
        legacyStorageClasses: legacyClasses(flags.legacyStorageClasses),
      };
      await write(flags, planOf(options), (await import("@longshore/migration/gardener")).gardenerCrdsUrl);
    });
}

function addCommonFlags(command: Command): Command {
  return command
    .option("--namespace <namespace>", "where it runs", "longshore-system")
    .option("--no-create-namespace", "the namespace is there already")
    .option("--image <image>", "Longshore's image")
    .option("--replicas <n>", "one of them leads", "2")
    .option("--kubernetes-version <version>", "the oldest Kubernetes that must take the objects, e.g. 1.20")
    .option("--crds", "with the CustomResourceDefinitions that it needs, for a cluster that lacks them")
    .addOption(
      new Option("-o, --output <form>", "objects for kubectl apply, or a chart for Helm")
        .choices(["yaml", "helm"])
        .default("yaml"),
    )
    .option("--output-dir <dir>", "where the chart is written")
    .option("--force", "write over files that are there");
}

function commonOptions(flags: CommonFlags) {
  return {
    namespace: flags.namespace,
    // Otherwise it is created unless each cluster has it.
    ...(flags.createNamespace ? {} : { createNamespace: false }),
    ...(flags.image === undefined ? {} : { image: flags.image }),
    replicas: wholeNumber("--replicas", flags.replicas, 1, 100),
    ...(flags.kubernetesVersion === undefined ? {} : { kubernetesVersion: flags.kubernetesVersion }),
  };
}

const flagOf = {
  image: "--image",
  namespace: "--namespace",
  kubernetesVersion: "--kubernetes-version",
  providerType: "--provider-type",
} as const;

function planOf(options: DistributionOptions): DistributionPlan {
  try {
    return planDistribution(options);
  } catch (error) {
    if (error instanceof DeployOptionError) throw new UsageError(inFlags(error.message, flagOf));
    throw error;
  }
}

async function write(flags: CommonFlags, plan: DistributionPlan, crds: URL): Promise<void> {
  const definitions = flags.crds === true ? await textsOf(crds) : new Map<string, string>();
  if (flags.output === "yaml") {
    if (flags.outputDir !== undefined) {
      throw new UsageError("--output-dir: is for -o helm; redirect the output of -o yaml");
    }
    for (const text of definitions.values()) process.stdout.write(`---\n${text}`);
    for (const { object, comments } of renderDistribution(plan)) {
      process.stdout.write(`---\n${yamlText(object, comments)}`);
    }
    return;
  }
  if (flags.outputDir === undefined) {
    throw new UsageError("--output-dir: where is the chart to be written? A chart is a directory");
  }
  const dir = resolve(flags.outputDir);
  const inChart = [...definitions].map(([name, text]) => [`crds/${name}`, text] as const);
  await writeFiles(dir, new Map([...renderDistributionChart(plan), ...inChart]), flags.force === true);
  process.stdout.write(
    `chart written: helm install ${plan.name} ${dir} --namespace ${plan.namespace} --create-namespace\n`,
  );
}

async function textsOf(directory: URL): Promise<ReadonlyMap<string, string>> {
  const dir = fileURLToPath(directory);
  const names = (await readdir(dir)).sort();
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name), "utf8")] as const)),
  );
}
