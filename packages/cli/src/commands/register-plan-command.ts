/** `longshore plan`: what a crossing would do, step by step, and whether a plan still holds. Reads only. */
import type { CrossingPlan } from "@longshore/migration";
import { type Command, Option } from "commander";
import { type ClusterFlags, withCluster } from "../cluster-access.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { repeated, wholeNumber } from "../flags.ts";
import { readPlanFile, writePlanFile } from "./plan-file.ts";
import { planText } from "./plan-report.ts";
import { type PlatformName, platformNames } from "./platform-names.ts";
import { onePluginOption } from "./plugin-flag.ts";

interface PlanFlags extends ClusterFlags {
  readonly plugin?: readonly string[];
  readonly direction: "migrate" | "rollback";
  readonly maxUnavailable?: string;
  readonly platform?: PlatformName;
  readonly force?: true;
  readonly output?: string;
  readonly check?: string;
  readonly printSchema?: true;
}

/** Adds the command `plan` to `program`. */
export function registerPlanCommand(program: Command): void {
  program
    .command("plan")
    .description("what a crossing of a plugin would do in any cluster, step by step; changes nothing")
    .addOption(
      onePluginOption("the in-tree plugin, e.g. aws-ebs; may be repeated").argParser<readonly string[]>(
        repeated,
      ),
    )
    .addOption(
      new Option("--direction <way>", "of the crossing").choices(["migrate", "rollback"]).default("migrate"),
    )
    .option("--max-unavailable <count>", "nodes that cross at the same time at most (default: 1)")
    .addOption(
      new Option(
        "--platform <name>",
        "where it is to be run: on openshift and gardener the platform drains the nodes",
      ).choices(platformNames),
    )
    .option("--force", "also evict pods that no controller brings back")
    .option(
      "-o, --output <file>",
      "write the plan there, instead of as text to standard output: as YAML, with a document for each plugin, or as JSON if it ends with .json",
    )
    .option("--check <file>", "say what of the plan in this file is stale; refuse one of another cluster")
    .option("--print-schema", "print the JSON Schema of a plan, and end")
    .option("--kubeconfig <file>", "the cluster; default $KUBECONFIG, then the account of the pod")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .addHelpText(
      "after",
      "\nHere -o names a file, as the plan is made to be kept: `longshore migrate FILE` runs it.\n" +
        "--check prints nothing where nothing is stale; that nodes have crossed since, by a run of the plan, is not.\n" +
        "Exit codes: 0 done, and nothing is stale; 1 failed, something is stale, or the plan is of another cluster; 2 wrong usage.",
    )
    .action(async (flags: PlanFlags) => {
      process.exitCode = await interruptible((signal) => run(flags, signal));
    });
}

async function run(flags: PlanFlags, signal: AbortSignal): Promise<number> {
  const { plugin: plugins = [], check, output } = flags;
  if (flags.printSchema === true) {
    const { planSchema } = await import("@longshore/migration");
    process.stdout.write(`${JSON.stringify(planSchema, undefined, 2)}\n`);
    return exitCodes.done;
  }
  if (check !== undefined) {
    if (output !== undefined) throw new UsageError("--check: it writes no plan; leave --output out");
    return checked(flags, await readPlanFile("--check", check), signal);
  }
  if (plugins.length === 0) throw new UsageError("--plugin: which plugin? Name one, e.g. aws-ebs");
  if (flags.platform === "gardener" && flags.direction === "rollback") {
    throw new UsageError("--direction: Gardener has no way back: see docs/guides/migrate.md");
  }
  const { maxUnavailable } = flags;
  const wanted = {
    direction: flags.direction,
    force: flags.force === true,
    rollsNodes: flags.platform === "openshift" || flags.platform === "gardener",
    ...(maxUnavailable === undefined
      ? {}
      : { maxUnavailable: wholeNumber("--max-unavailable", maxUnavailable, 1, 1000) }),
  };
  const plans = await made(
    flags,
    [...new Set(plugins)].map((plugin) => ({ ...wanted, plugin })),
    signal,
  );
  if (output !== undefined) await writePlanFile(output, plans);
  else process.stdout.write(plans.map(planText).join("\n"));
  return exitCodes.done;
}

type Wanted = Pick<CrossingPlan, "plugin" | "direction"> & {
  readonly maxUnavailable?: number;
  readonly force: boolean;
  readonly rollsNodes: boolean;
};

async function made(
  flags: ClusterFlags,
  wanted: readonly Wanted[],
  signal: AbortSignal,
): Promise<readonly CrossingPlan[]> {
  const { crossingSubject, planCrossing } = await import("@longshore/migration");
  const options = wanted.map(({ plugin, ...rest }) => ({ ...rest, subject: crossingSubject(plugin) }));
  return withCluster(flags, "or run it in a pod", async (env) => {
    const plans: CrossingPlan[] = [];
    for (const each of options) plans.push(await planCrossing(env, each, signal));
    return plans;
  });
}

async function checked(
  flags: PlanFlags,
  plans: readonly CrossingPlan[],
  signal: AbortSignal,
): Promise<number> {
  const { crossingSubject, nodesDoneOf, staleParts } = await import("@longshore/migration");
  const { foreignText } = await import("@longshore/runtime");
  const force = flags.force === true;
  const now = await made(
    flags,
    plans.map((plan) => ({ ...plan, force, rollsNodes: plan.nodesRolledBy === "platform" })),
    signal,
  );
  const done = await withCluster(flags, "or run it in a pod", ({ kube }) =>
    Promise.all(plans.map((plan) => nodesDoneOf(kube, crossingSubject(plan.plugin), plan, signal))),
  );
  const stale = plans.flatMap((plan, at) => {
    const parts = staleParts(plan, now[at] as CrossingPlan, done[at]);
    return plans.length === 1 ? parts : parts.map((part) => `${plan.plugin}: ${part}`);
  });
  for (const part of stale) process.stdout.write(`${foreignText(part)}\n`);
  return stale.length === 0 ? exitCodes.done : exitCodes.failed;
}
