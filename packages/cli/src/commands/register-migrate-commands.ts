/** `longshore migrate` and `longshore rollback`: carry a cluster across and back. */
import { lockCrossing, openCluster, type PluginName, pluginsNamed, thisRunner } from "@longshore/local";
import {
  type CrossingDirection,
  type CrossingEnv,
  type CrossingEvent,
  type CrossingOptions,
  type CrossingSubject,
  crossingSubject,
  defaultStepTimeoutMs,
  inspectUnfinishedRun,
  orderOfCrossings,
  PreflightError,
  preflight,
  readJournal,
  runCrossing,
} from "@longshore/migration";
import { shellWord, withDeadline } from "@longshore/runtime";
import type { Command } from "commander";
import { absolute, clusterDir, commandEnv } from "../environment.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { duration, withForms } from "../flags.ts";
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
import { pluginsOption } from "./plugin-flag.ts";

/** Flags of both verbs. */
export interface CrossingFlags {
  readonly plugin: readonly string[];
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
Several plugins cross one after the other, each with a journal of its own; one that was interrupted comes first.

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
    withForms(program.command(name), ["text", "json"])
      .description(description)
      .addOption(
        pluginsOption("the in-tree plugin, e.g. aws-ebs; all: those of the cluster").makeOptionMandatory(),
      )
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
      .addHelpText("after", help)
      .action((flags: CrossingFlags) => interruptible((signal) => cross(direction, flags, signal)));
  }
}

async function cross(direction: CrossingDirection, flags: CrossingFlags, signal: AbortSignal): Promise<void> {
  const named = pluginsNamed(flags.plugin);
  const stepTimeoutMs = duration("--step-timeout", flags.stepTimeout);
  if (flags.journal !== undefined && named.length > 1) {
    throw new UsageError("--journal: every plugin has a journal of its own; name one --plugin with it");
  }
  const env = commandEnv();
  const cluster = await openCluster(env, clusterDir(flags.dir));
  const { kube, platform, layout, config } = cluster;
  const subjects = pluginsNamed(flags.plugin, config.plugins).map(crossingSubject);
  const parts = { ...env, kube, platform };
  const force = flags.force === true ? { force: true } : {};
  let release = () => {};
  try {
    if (flags.dryRun === true) {
      for (const subject of subjects) {
        await look(parts, flags, { subject, direction, ...force }, subjects.length > 1, signal);
      }
      return;
    }
    release = lockCrossing(layout);
    const fileOf = ({ shortName }: CrossingSubject) =>
      flags.journal === undefined ? layout.journalFile(shortName as PluginName) : absolute(flags.journal);
    for (const subject of await orderOfCrossings(env.host, subjects, fileOf)) {
      const others = config.plugins.filter((name) => name !== subject.shortName);
      const journals = { journalFile: fileOf(subject), otherJournalFiles: others.map(layout.journalFile) };
      const options = { subject, direction, ...journals, stepTimeoutMs, by: thisRunner(), ...force };
      await carry(parts, options, flags, signal);
    }
  } finally {
    release();
    kube.close();
  }
}

/** One plugin, and what is left of it when it does not come to its end. */
async function carry(
  env: CrossingParts,
  options: CrossingOptions,
  flags: CrossingFlags,
  signal: AbortSignal,
): Promise<void> {
  const { subject, journalFile } = options;
  const progress = createProgress(flags.json);
  const show = flags.json === true ? jsonEvents : showCrossing(progress);
  let begun = false;
  const onEvent = (event: CrossingEvent) => {
    // Before the end of its preflight a run changes nothing.
    begun ||= event.kind === "stepDone" && event.step === "preflight";
    show(event);
  };
  try {
    const result = await runCrossing(env, { ...options, onEvent }, signal);
    progress.clear();
    process.stdout.write(crossingWords(result, flags.json === true));
  } catch (error) {
    progress.clear();
    // The Ctrl-C that ended the run is not to end the look as well.
    const within = signal.aborted ? new AbortController().signal : signal;
    if (begun) progress.line("looking at what is left (Ctrl-C ends this at once)");
    const left = begun ? await whatIsLeft(env, subject, flags, journalFile, within) : undefined;
    if (flags.json === true) process.stdout.write(jsonFailure(error, signal.aborted, left));
    else for (const line of left === undefined ? [] : leftLines(left)) progress.line(line);
    throw error;
  }
}

type CrossingParts = CrossingEnv & ReturnType<typeof commandEnv>;

/** `--dry-run`. */
async function look(
  env: CrossingParts,
  flags: CrossingFlags,
  options: Parameters<typeof preflight>[1],
  isOneOfSeveral: boolean,
  signal: AbortSignal,
): Promise<void> {
  const plugin = isOneOfSeveral ? options.subject.shortName : undefined;
  if (plugin !== undefined && flags.json !== true) process.stdout.write(`${plugin}\n`);
  try {
    const warnings = await preflight(env, options, signal);
    process.stdout.write(flags.json === true ? preflightJson(warnings, plugin) : preflightWords(warnings));
  } catch (error) {
    if (error instanceof PreflightError) {
      const warnings = error.findings.filter(({ severity }) => severity === "warning");
      if (flags.json === true) process.stdout.write(preflightJson(error.findings, plugin));
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
  const plugins = flags.plugin.flatMap((name) => ["--plugin", name]);
  const command = (verb: string) => ["longshore", verb, ...plugins, ...place].map(shellWord).join(" ");
  return {
    seen,
    journalFile,
    journal,
    resume: command(journal?.direction ?? "migrate"),
    rollBack: command(journal?.direction === "rollback" ? "migrate" : "rollback"),
    uncordonAsked: uncordon,
  };
}
