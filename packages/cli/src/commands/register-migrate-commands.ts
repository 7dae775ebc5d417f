/** `longshore migrate` and `longshore rollback`: carry a cluster across and back. */
import { lockCrossing, openCluster, thisRunner } from "@longshore/local";
import {
  type CrossingDirection,
  type CrossingEvent,
  type CrossingSubject,
  crossingSubject,
  defaultStepTimeoutMs,
  inspectUnfinishedRun,
  PreflightError,
  preflight,
  readJournal,
  runCrossing,
} from "@longshore/migration";
import { withDeadline } from "@longshore/runtime";
import type { Command } from "commander";
import { absolute, clusterDir, commandEnv } from "../environment.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { duration } from "../flags.ts";
import { createProgress, showCrossing } from "../terminal.ts";
import {
  crossingWords,
  jsonEvents,
  jsonFailure,
  type Left,
  leftLines,
  preflightJson,
  preflightWords,
} from "./migrate-report.ts";

/** Flags of both verbs. */
export interface CrossingFlags {
  readonly plugin: string;
  readonly dir?: string;
  readonly journal?: string;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly stepTimeout: string;
  readonly uncordonOnAbort?: boolean;
}

/** What is left is looked at for so long, in milliseconds, before the command ends. */
const lookWithinMs = 10_000;

const help = `
A run that was interrupted is resumed by running it again. Where it waits, it says for what, at once and every 30 s.
Ctrl-C ends it and says what it leaves; a second Ctrl-C ends it at once.

Exit codes: ${exitCodes.done} done, ${exitCodes.failed} failed, ${exitCodes.usage} wrong usage, ${exitCodes.timedOut} a step took longer than --step-timeout, ${exitCodes.interrupted} interrupted.`;

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
      .option("--dry-run", "run the preflight only, change nothing")
      .option(
        "--step-timeout <duration>",
        "give a step up that takes longer, e.g. 90s or 1h",
        `${defaultStepTimeoutMs / 60_000}m`,
      )
      .option("--uncordon-on-abort", "when the run ends early, uncordon the nodes on which pods are safe")
      .option("--json", "print the result as JSON, and on stderr what happens, a JSON object a line")
      .addHelpText("after", help)
      .action((flags: CrossingFlags) => interruptible((signal) => cross(direction, flags, signal)));
  }
}

async function cross(direction: CrossingDirection, flags: CrossingFlags, signal: AbortSignal): Promise<void> {
  const subject = subjectOf(flags.plugin);
  const stepTimeoutMs = duration("--step-timeout", flags.stepTimeout);
  const env = commandEnv();
  const cluster = await openCluster(env, clusterDir(flags.dir));
  const { kube, platform, layout } = cluster;
  const force = flags.force === true ? { force: true } : {};
  let release = () => {};
  try {
    if (flags.dryRun === true)
      return await look({ ...env, kube, platform }, flags, { subject, direction, ...force }, signal);
    release = lockCrossing(layout);
    const progress = createProgress(flags.json);
    const show = flags.json === true ? jsonEvents : showCrossing(progress);
    const journalFile = flags.journal === undefined ? layout.journalFile : absolute(flags.journal);
    let begun = false;
    const onEvent = (event: CrossingEvent) => {
      // Before the end of its preflight a run changes nothing.
      begun ||= event.kind === "stepDone" && event.step === "preflight";
      show(event);
    };
    try {
      const options = { subject, direction, journalFile, stepTimeoutMs, by: thisRunner(), ...force, onEvent };
      const result = await runCrossing({ ...env, kube, platform }, options, signal);
      progress.clear();
      process.stdout.write(crossingWords(result, flags.json === true));
    } catch (error) {
      progress.clear();
      // The Ctrl-C that ended the run is not to end the look as well.
      const within = signal.aborted ? new AbortController().signal : signal;
      if (begun) progress.line("looking at what is left (Ctrl-C ends this at once)");
      const left = begun
        ? await whatIsLeft({ ...env, kube, platform }, subject, flags, journalFile, within)
        : undefined;
      if (flags.json === true) process.stdout.write(jsonFailure(error, signal.aborted, left));
      else for (const line of left === undefined ? [] : leftLines(left)) progress.line(line);
      throw error;
    }
  } finally {
    release();
    kube.close();
  }
}

type CrossingParts = Parameters<typeof preflight>[0] &
  Parameters<typeof inspectUnfinishedRun>[0] &
  ReturnType<typeof commandEnv>;

/** `--dry-run`. */
async function look(
  env: CrossingParts,
  flags: CrossingFlags,
  options: Parameters<typeof preflight>[1],
  signal: AbortSignal,
): Promise<void> {
  try {
    const warnings = await preflight(env, options, signal);
    process.stdout.write(flags.json === true ? preflightJson(warnings) : preflightWords(warnings));
  } catch (error) {
    if (error instanceof PreflightError) {
      const warnings = error.findings.filter(({ severity }) => severity === "warning");
      if (flags.json === true) process.stdout.write(preflightJson(error.findings));
      else if (warnings.length > 0) process.stderr.write(preflightWords(warnings, ""));
    }
    throw error;
  }
}

/** What a run that did not come to its end leaves, as far as it can be seen. */
async function whatIsLeft(
  env: CrossingParts,
  subject: CrossingSubject,
  flags: CrossingFlags,
  journalFile: string,
  within: AbortSignal,
): Promise<Left> {
  const uncordon = flags.uncordonOnAbort === true;
  const seen = await withDeadline(env.clock, lookWithinMs, within, (signal) =>
    inspectUnfinishedRun(env, subject, { uncordon }, signal),
  ).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  const journal = await readJournal(env.host, journalFile).catch(() => undefined);
  const place = [
    ...(flags.dir === undefined ? [] : ["--dir", clusterDir(flags.dir)]),
    ...(flags.journal === undefined ? [] : ["--journal", journalFile]),
    ...(flags.force === true ? ["--force"] : []),
  ];
  const command = (verb: string) => ["longshore", verb, "--plugin", subject.shortName, ...place].join(" ");
  return {
    seen,
    journalFile,
    journal,
    resume: command(journal?.direction ?? "migrate"),
    rollBack: command(journal?.direction === "rollback" ? "migrate" : "rollback"),
    uncordonAsked: uncordon,
  };
}

function subjectOf(plugin: string) {
  try {
    return crossingSubject(plugin);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: undefined });
  }
}
