/** `longshore driver deploy`, `upgrade` and `remove`: wires flags, files and the cluster to the deployment library. */
import { resolve } from "node:path";
import {
  allObjects,
  checkDriverName,
  type DeployOptions,
  leftText,
  planDeployment,
  type RolloutOptions,
  removeDeployment,
  renderChart,
  renderDeployment,
  upgradeDeployment,
  yamlText,
} from "@longshore/deployment";
import { createHttpClient, type KubeEnv } from "@longshore/kube";
import { createLogger, noMeter, systemClock, systemRandom } from "@longshore/runtime";
import { type Command, Option } from "commander";
import { interruptible, UsageError } from "../exit.ts";
import { duration } from "../flags.ts";
import { kubeconfigOf } from "../kubeconfig.ts";
import { addDeployFlags, type DeployFlags, deployOptionsOf } from "./deploy-flags.ts";
import { errorInFlags, inFlags } from "./driver-deploy-fields.ts";
import { writeFiles } from "./write-files.ts";

const deployHelp = `
What the driver is given: CSI_ENDPOINT (unix:///csi/csi.sock) and NODE_NAME in its environment.

Example:
  longshore driver deploy --name disk.csi.example.com --image registry.example.com/disk:v1 --attach -o yaml |
    kubectl apply -f -
  longshore driver deploy --name disk.csi.example.com --image registry.example.com/disk:v1 -o helm --output-dir chart`;

const upgradeHelp = `
The order is: the controller down, rights and classes, the node part, the controller up. What no flag says stays as it
was. A run that was cut off goes on when it is started again.

Example:
  longshore driver upgrade --name disk.csi.example.com --image registry.example.com/disk:v2`;

/** Adds the verbs below `driver`. */
export function registerDriverDeploy(driver: Command): void {
  const name = ["--name <name>", "the driver's name, as GetPluginInfo gives it"] as const;
  addDeployFlags(
    driver
      .command("deploy")
      .description("render the recommended deployment of a CSI driver")
      .requiredOption(...name)
      .requiredOption("--image <image>", "the driver's image"),
  )
    .option("--kubernetes-version <version>", "the oldest Kubernetes that must take the objects, e.g. 1.20")
    .addOption(
      new Option("-o, --output <form>", "objects for kubectl apply, or a chart for Helm")
        .choices(["yaml", "helm"])
        .default("yaml"),
    )
    .option("--output-dir <dir>", "where the chart is written")
    .option("--force", "write over files that are there")
    .addHelpText("after", deployHelp)
    .action(async (flags: DeployFlags & OutputFlags) => {
      const plan = explained(() => planDeployment(deployOptionsOf(flags) as DeployOptions));
      if (flags.output === "helm" && flags.outputDir === undefined) {
        throw new UsageError("--output-dir: where is the chart to be written? A chart is a directory");
      }
      if (flags.output === "yaml" && flags.outputDir !== undefined) {
        throw new UsageError("--output-dir: is for -o helm; redirect the output of -o yaml");
      }
      for (const warning of plan.warnings) process.stderr.write(`warning: ${inFlags(warning)}\n`);
      if (flags.outputDir !== undefined) {
        const dir = resolve(flags.outputDir);
        await writeFiles(dir, renderChart(plan), flags.force === true);
        return say(
          `chart written: helm install ${plan.base} ${dir} --namespace ${plan.namespace} --create-namespace`,
        );
      }
      for (const { object, comments } of allObjects(renderDeployment(plan))) {
        process.stdout.write(`---\n${yamlText(object, comments)}`);
      }
    });

  addRolloutFlags(
    addDeployFlags(
      driver
        .command("upgrade")
        .description(
          "bring a deployment to a cluster, new or over an older one, in the order that loses no volume",
        )
        .requiredOption(...name)
        .option("--image <image>", "the driver's image")
        .option("--adopt", "take over objects of these names that something else has made"),
    ),
  )
    .addHelpText("after", upgradeHelp)
    .action(async (flags: DeployFlags & RolloutFlags & { readonly adopt?: true }) => {
      await rollOut(flags, async (env, options) => {
        const adopt = flags.adopt === true;
        const { changed } = await upgradeDeployment(env, deployOptionsOf(flags), { ...options, adopt });
        if (!changed) say(`${flags.name} is as asked already`);
        else if (!options.dryRun) say(`${flags.name} is deployed`);
      });
    });

  addRolloutFlags(
    driver
      .command("remove")
      .description("take a deployment out of a cluster; refused while volumes need it")
      .requiredOption(...name)
      .option("--force", "although volumes are stranded"),
  ).action(async (flags: RolloutFlags & { readonly name: string; readonly force?: true }) => {
    explained(() => checkDriverName(flags.name));
    await rollOut(flags, async (env, options) => {
      const outcome = await removeDeployment(env, flags.name, { ...options, force: flags.force === true });
      if (outcome.removed === 0) say(`nothing of ${flags.name} is deployed`);
      else if (!options.dryRun) say(`${flags.name} is removed`);
      const left = leftText(outcome);
      if (left !== undefined) say(left);
    });
  });
}

interface OutputFlags {
  readonly output: "yaml" | "helm";
  readonly outputDir?: string;
  readonly force?: true;
}

interface RolloutFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly timeout: string;
  readonly dryRun?: true;
}

function addRolloutFlags(command: Command): Command {
  return command
    .option("--kubeconfig <file>", "the cluster; default $KUBECONFIG")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .option("--timeout <duration>", "the whole must be done within this time", "10m")
    .option("--dry-run", "say what would be done, having asked the server, and do nothing");
}

/** Runs against the cluster that the flags name; Ctrl-C ends it where it is. */
async function rollOut(
  flags: RolloutFlags,
  work: (env: KubeEnv, options: RolloutOptions) => Promise<void>,
): Promise<void> {
  const timeoutMs = duration("--timeout", flags.timeout);
  const path = flags.kubeconfig ?? process.env.KUBECONFIG ?? "";
  if (path === "") throw new UsageError("--kubeconfig: which cluster? Give a file, or set KUBECONFIG");
  const config = await kubeconfigOf(flags.kubeconfig === undefined ? "KUBECONFIG" : "--kubeconfig", {
    path: resolve(path),
    environment: process.env as Record<string, string>,
    ...(flags.context === undefined ? {} : { context: flags.context }),
  });
  const logger = createLogger({ format: "human", level: "warn" });
  const runtime = { clock: systemClock, random: systemRandom, logger, meter: noMeter };
  const kube = createHttpClient(runtime, config);
  let last = "";
  try {
    await interruptible(async (signal) => {
      try {
        await work(
          { ...runtime, kube },
          {
            signal,
            timeoutMs,
            dryRun: flags.dryRun === true,
            onProgress: (line) => {
              last = inFlags(line);
              // The output of a dry run is what would be done.
              (flags.dryRun === true ? process.stdout : process.stderr).write(`${last}\n`);
            },
          },
        );
      } catch (error) {
        if (signal.aborted && last !== "") {
          process.stderr.write(
            "interrupted: what was begun is left as it is; run the same command again to go on\n",
          );
        }
        throw errorInFlags(error);
      }
    });
  } finally {
    await kube.close();
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Does what the library does, and throws its errors in the command's words. */
function explained<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw errorInFlags(error);
  }
}
