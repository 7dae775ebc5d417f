/** `longshore migrate` and `longshore rollback`: carry a cluster across and back. */
import { openCluster, takeCrossing } from "@longshore/local";
import {
  type CrossingDirection,
  type CrossingResult,
  crossingSubject,
  preflight,
  runCrossing,
} from "@longshore/migration";
import type { Command } from "commander";
import pc from "picocolors";
import { absolute, clusterDir, commandEnv } from "../environment.ts";
import { interruptible, UsageError } from "../exit.ts";
import { createProgress, seconds, showCrossing } from "../terminal.ts";

interface CrossingFlags {
  readonly plugin: string;
  readonly dir?: string;
  readonly journal?: string;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Adds the two verbs. */
export function registerMigrateCommands(program: Command): void {
  const verbs: readonly (readonly [string, CrossingDirection, string])[] = [
    [
      "migrate",
      "migrate",
      "carry the cluster's volumes of an in-tree plugin to its CSI driver, node by node",
    ],
    ["rollback", "rollback", "carry the cluster back to the in-tree plugin, node by node"],
  ];
  for (const [name, direction, description] of verbs) {
    program
      .command(name)
      .description(description)
      .requiredOption("--plugin <name>", "the in-tree plugin, e.g. aws-ebs")
      .option("--dir <dir>", "directory of the local cluster")
      .option("--journal <file>", "where the run keeps its journal (default: in the cluster directory)")
      .option("--force", "also evict pods that no controller brings back")
      .option("--dry-run", "only look for what stands in the way")
      .option("--json", "print the result as JSON")
      .addHelpText("after", "\nA run that was interrupted is resumed by running it again.")
      .action((flags: CrossingFlags) => interruptible((signal) => cross(direction, flags, signal)));
  }
}

async function cross(direction: CrossingDirection, flags: CrossingFlags, signal: AbortSignal): Promise<void> {
  const subject = subjectOf(flags.plugin);
  const env = commandEnv();
  const cluster = await openCluster(env, clusterDir(flags.dir));
  let release = () => {};
  try {
    const { kube, platform, layout } = cluster;
    const force = flags.force === true ? { force: true } : {};
    if (flags.dryRun === true) {
      await preflight({ kube, platform }, { subject, direction, ...force }, signal);
      process.stdout.write(flags.json === true ? '{"blockers":[]}\n' : "nothing stands in the way\n");
      return;
    }
    release = takeCrossing(layout);
    const progress = createProgress(flags.json);
    const journalFile = flags.journal === undefined ? `${layout.dir}/crossing.json` : absolute(flags.journal);
    const result = await runCrossing(
      { ...env, kube, platform },
      { subject, direction, journalFile, ...force, onEvent: showCrossing(progress) },
      signal,
    ).finally(() => progress.clear());
    process.stdout.write(flags.json === true ? `${JSON.stringify(result)}\n` : summary(result));
  } finally {
    release();
    cluster.kube.close();
  }
}

function summary(result: CrossingResult): string {
  const what = result.direction === "migrate" ? "is served by CSI" : "is served in-tree again";
  const resumed = result.resumed ? " (resumed)" : "";
  return `${pc.bold(result.plugin)} ${what}${resumed}, after ${seconds(result.elapsedMs)}\n`;
}

function subjectOf(plugin: string) {
  try {
    return crossingSubject(plugin);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: undefined });
  }
}
