/** `longshore driver deploy`, `upgrade` and `remove`: wires flags and files to the deployment library. */
import {
  allObjects,
  DeployOptionError,
  type DeployOptions,
  planDeployment,
  renderDeployment,
  yamlText,
} from "@longshore/sidecars";
import { type Command, Option } from "commander";
import { UsageError } from "../exit.ts";
import { addDeployFlags, type DeployFlags, deployOptionsOf } from "./driver-deploy-flags.ts";

const deployHelp = `
Examples:
  longshore driver deploy --name disk.csi.example.com --image registry.example.com/disk:v1 --attach -o yaml |
    kubectl apply -f -
  longshore driver deploy --name disk.csi.example.com --image registry.example.com/disk:v1 -o helm --output-dir ./chart

What the driver is given: CSI_ENDPOINT (unix:///csi/csi.sock) and NODE_NAME in its environment.`;

/** Adds the verbs below `driver`. */
export function registerDriverDeploy(driver: Command): void {
  addDeployFlags(
    driver
      .command("deploy")
      .description("render the recommended deployment of a CSI driver")
      .requiredOption("--name <name>", "the driver's name, as GetPluginInfo gives it")
      .requiredOption("--image <image>", "the driver's image"),
  )
    .option("--kubernetes-version <version>", "the oldest Kubernetes that must take the objects, e.g. 1.20")
    .addOption(new Option("-o, --output <format>", "objects, or a chart").choices(["yaml"]).default("yaml"))
    .addHelpText("after", deployHelp)
    .action((flags: DeployFlags) => {
      const plan = planned(deployOptionsOf, flags);
      for (const { object, comments } of allObjects(renderDeployment(plan))) {
        process.stdout.write(`---\n${yamlText(object, comments)}`);
      }
    });
}

/** The plan for the flags; warnings go to stderr. @throws UsageError when it cannot be */
function planned(optionsOf: (flags: DeployFlags) => object, flags: DeployFlags) {
  try {
    const plan = planDeployment(optionsOf(flags) as DeployOptions);
    for (const warning of plan.warnings) process.stderr.write(`warning: ${warning}\n`);
    return plan;
  } catch (error) {
    if (error instanceof DeployOptionError) throw new UsageError(error.message);
    throw error;
  }
}
