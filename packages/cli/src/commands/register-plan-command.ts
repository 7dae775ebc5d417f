/** `longshore plan`: what a crossing would do, step by step, and whether a plan still holds. Reads only. */
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { CrossingPlan } from "@longshore/migration";
import { type Command, Option } from "commander";
import { type ClusterFlags, withCluster } from "../cluster-access.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { planText } from "./plan-report.ts";

interface PlanFlags extends ClusterFlags {
  readonly plugin?: string;
  readonly direction: "migrate" | "rollback";
  readonly output?: string;
  readonly check?: string;
}

/** Adds the command `plan` to `program`. */
export function registerPlanCommand(program: Command): void {
  program
    .command("plan")
    .description("what a crossing of a plugin would do in any cluster, step by step; changes nothing")
    .option("--plugin <name>", "the in-tree plugin, e.g. aws-ebs; with --check that of the plan")
    .addOption(
      new Option("--direction <way>", "of the crossing").choices(["migrate", "rollback"]).default("migrate"),
    )
    .option("-o, --output <file>", "write the plan there as YAML, instead of as text to standard output")
    .option("--check <file>", "say what of the plan in this file is stale; refuse one of another cluster")
    .option("--kubeconfig <file>", "the cluster; default $KUBECONFIG, then the account of the pod")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, and nothing is stale; 1 failed, something is stale, or the plan is of another cluster; 2 wrong usage.",
    )
    .action(async (flags: PlanFlags) => {
      process.exitCode = await interruptible((signal) => run(flags, signal));
    });
}

async function run(flags: PlanFlags, signal: AbortSignal): Promise<number> {
  const { plugin, check, output } = flags;
  if (check !== undefined) {
    if (output !== undefined) throw new UsageError("--check: it writes no plan; leave --output out");
    return checked(flags, await planIn(check), signal);
  }
  if (plugin === undefined) throw new UsageError("--plugin: which plugin? Name one, e.g. aws-ebs");
  const plan = await made(flags, { plugin, direction: flags.direction }, signal);
  if (output === undefined) {
    process.stdout.write(planText(plan));
    return exitCodes.done;
  }
  const { dump } = await import("js-yaml");
  await writeFile(resolve(output), dump(plan, { lineWidth: -1 }));
  return exitCodes.done;
}

async function made(
  flags: ClusterFlags,
  { plugin, direction }: Pick<CrossingPlan, "plugin" | "direction">,
  signal: AbortSignal,
): Promise<CrossingPlan> {
  const { crossingSubject, planCrossing } = await import("@longshore/migration");
  const subject = crossingSubject(plugin);
  return withCluster(flags, "or run it in a pod", (env) => planCrossing(env, { subject, direction }, signal));
}

async function planIn(file: string): Promise<CrossingPlan> {
  const { PlanError, readPlan } = await import("@longshore/migration");
  const { load } = await import("js-yaml");
  try {
    return readPlan(load(await readFile(resolve(file), "utf8")));
  } catch (error) {
    throw new PlanError(`--check ${file}`, { cause: error });
  }
}

async function checked(flags: PlanFlags, plan: CrossingPlan, signal: AbortSignal): Promise<number> {
  const { staleParts } = await import("@longshore/migration");
  const { foreignText } = await import("@longshore/runtime");
  const stale = staleParts(plan, await made(flags, plan, signal));
  for (const part of stale) process.stdout.write(`${foreignText(part)}\n`);
  return stale.length === 0 ? exitCodes.done : exitCodes.failed;
}
