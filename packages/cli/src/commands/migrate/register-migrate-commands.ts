/** `longshore migrate` and `longshore rollback`: carry a cluster across and back. */
import { pluginsNamed, thisRunner } from "@longshore/local";
import {
  type CrossingDirection,
  type CrossingEnv,
  type CrossingEvent,
  type CrossingOptions,
  type CrossingPlan,
  crossingRoles,
  crossingSubject,
  inspectUnfinishedRun,
  journalStoreOf,
  type ManualTask,
  orderOfCrossings,
  PreflightError,
  preflight,
  runCrossing,
  underCrossingLease,
  waitWords,
} from "@longshore/migration";
import { shellWord, withDeadline } from "@longshore/runtime";
import type { Command } from "commander";
import { clusterDir } from "../../environment.ts";
import { exitCodes, interruptible, UsageError } from "../../exit.ts";
import { createProgress, showCrossing } from "../../terminal.ts";
import { readPlanFile } from "../plan-file.ts";
import { type CrossingFlags, crossingCommand, platformOf, runOptions } from "./crossing-flags.ts";
import { type CrossingTarget, openTarget } from "./crossing-target.ts";
import {
  crossingWords,
  jsonEvents,
  jsonFailure,
  type Left,
  leftLines,
  preflightJson,
  preflightWords,
  taskLines,
} from "./migrate-report.ts";

/** What is left is looked at for so long, in milliseconds, before the command ends. */
const lookWithinMs = 10_000;

/** Adds the two verbs. */
export function registerMigrateCommands(program: Command): void {
  const verbs: readonly (readonly [CrossingDirection, string])[] = [
    ["migrate", "carry a cluster's volumes of an in-tree plugin to its CSI driver, node by node"],
    ["rollback", "carry the cluster back to the in-tree plugin, node by node"],
  ];
  for (const [direction, description] of verbs) {
    crossingCommand(program, direction, description).action(
      async (file: string | undefined, flags: CrossingFlags) => {
        const code = await interruptible((signal) => cross(direction, file, flags, signal));
        // Left alone otherwise: 0 is what it is without a word.
        if (code !== exitCodes.done) process.exitCode = code;
      },
    );
  }
}

async function cross(
  direction: CrossingDirection,
  file: string | undefined,
  flags: CrossingFlags,
  signal: AbortSignal,
): Promise<number> {
  if (flags.printRbac === true) {
    const { dump } = await import("js-yaml");
    process.stdout.write(
      crossingRoles(platformOf(flags))
        .map((role) => dump(role, { noRefs: true }))
        .join("---\n"),
    );
    return exitCodes.done;
  }
  const plans = await plansIn(direction, file, flags);
  const options = runOptions(flags);
  const progress = createProgress(flags.json);
  const onTask = (task: ManualTask) => {
    if (flags.json === true) jsonEvents({ kind: "task", ...task });
    else for (const line of taskLines(task)) progress.line(line);
  };
  const target = await openTarget(flags, onTask, signal);
  try {
    const all = plans?.map(({ plugin }) => plugin) ?? target.plugins;
    if (flags.journal !== undefined && all.length > 1) {
      throw new UsageError("--journal: every plugin has a journal of its own; name one --plugin with it");
    }
    const planOf = (plugin: string) => plans?.find((plan) => plan.plugin === plugin);
    const wanted = all.map(crossingSubject).map((subject) => {
      const plan = planOf(subject.inTreeName);
      return { subject, direction, ...options, ...(plan === undefined ? {} : { plan }) };
    });
    if (flags.dryRun === true) {
      for (const each of wanted) await look(target.env, flags, each, wanted.length > 1, signal);
      return exitCodes.done;
    }
    return await runUnderLease(target, flags, file, wanted, signal);
  } finally {
    await target.close();
  }
}

async function plansIn(
  direction: CrossingDirection,
  file: string | undefined,
  flags: CrossingFlags,
): Promise<readonly CrossingPlan[] | undefined> {
  if (file === undefined) {
    if (flags.plugin === undefined)
      throw new UsageError("--plugin: which plugin? Name one, or a file of longshore plan");
    // Before a cluster is opened: an unknown name is wrong usage wherever it would be used.
    pluginsNamed(flags.plugin);
    return undefined;
  }
  if (flags.plugin !== undefined) throw new UsageError("--plugin: the plan names it; give one of the two");
  const plans = await readPlanFile("plan", file);
  const [plan] = plans;
  if (plan !== undefined && plan.direction !== direction) {
    throw new UsageError(
      `plan ${file}: its direction is ${plan.direction}: run it with longshore ${plan.direction}`,
    );
  }
  return plans;
}

type Wanted = Omit<CrossingOptions, "journalFile" | "otherJournalFiles" | "onEvent" | "by">;

async function runUnderLease(
  target: CrossingTarget,
  flags: CrossingFlags,
  file: string | undefined,
  wanted: readonly Wanted[],
  signal: AbortSignal,
): Promise<number> {
  const { identity, release } = await target.lock();
  const progress = createProgress(flags.json);
  try {
    const subjects = wanted.map(({ subject }) => subject);
    const ordered = await orderOfCrossings(target.env.host, subjects, (subject) =>
      target.journalFile(subject),
    );
    const inOrder = ordered.flatMap((subject) => wanted.filter((each) => each.subject === subject));
    const onWaiting = (wait: Parameters<typeof waitWords>[0]) =>
      progress.status(`  … waits for ${waitWords(wait)}`);
    const lease = { identity, onWaiting };
    return await underCrossingLease(target.env, lease, signal, async (kube, within, { isLater }) => {
      progress.clear();
      for (const each of inOrder) {
        const options = {
          ...each,
          journalFile: target.journalFile(each.subject),
          otherJournalFiles: target.otherJournalFiles(each.subject),
          by: thisRunner(),
          isLaterTerm: isLater,
        };
        const left = await carry({ ...target.env, kube }, options, { flags, file, isAsked: signal }, within);
        if (left.length > 0) return exitCodes.partly;
      }
      return exitCodes.done;
    });
  } finally {
    progress.clear();
    release();
  }
}

/** How the command was given. */
interface Given {
  readonly flags: CrossingFlags;
  readonly file: string | undefined;
  /** Aborts by Ctrl-C alone, not by the loss of the Lease. */
  readonly isAsked: AbortSignal;
}

/** One plugin, and what is left of it when it does not come to its end. @returns the nodes that are left for a later run */
async function carry(
  env: CrossingEnv,
  options: CrossingOptions,
  given: Given,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { flags, isAsked } = given;
  const progress = createProgress(flags.json);
  const show = flags.json === true ? jsonEvents : showCrossing(progress);
  let begun = options.isLaterTerm === true;
  const onEvent = (event: CrossingEvent) => {
    // Before the end of its preflight a run changes nothing.
    begun ||= event.kind === "stepDone" && event.step === "preflight";
    show(event);
  };
  try {
    const result = await runCrossing(env, { ...options, onEvent }, signal);
    progress.clear();
    process.stdout.write(crossingWords(result, flags.json === true));
    return result.nodesLeft;
  } catch (error) {
    progress.clear();
    // The Lease was lost: the run goes on once it is held again, and leaves nothing.
    if (signal.aborted && !isAsked.aborted) throw error;
    // The Ctrl-C that ended the run is not to end the look as well.
    const within = isAsked.aborted ? new AbortController().signal : signal;
    if (begun) progress.line("looking at what is left (Ctrl-C ends this at once)");
    const left = begun ? await whatIsLeft(env, options, given, within) : undefined;
    if (flags.json === true) process.stdout.write(jsonFailure(error, isAsked.aborted, left));
    else for (const line of left === undefined ? [] : leftLines(left)) progress.line(line);
    throw error;
  }
}

/** `--dry-run`. */
async function look(
  env: CrossingEnv,
  flags: CrossingFlags,
  options: Wanted,
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
  env: CrossingEnv,
  options: CrossingOptions,
  { flags, file }: Given,
  within: AbortSignal,
): Promise<Left> {
  const uncordon = flags.uncordonOnAbort === true;
  const looked = await withDeadline(env.clock, lookWithinMs, within, (signal) =>
    inspectUnfinishedRun(env, options.subject, { uncordon }, signal),
  ).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  const journal = await withDeadline(env.clock, lookWithinMs, within, (signal) =>
    journalStoreOf(env, { ...options, clusterJournal: false }).read(signal),
  ).catch(() => undefined);
  const plugins = ["--plugin", options.subject.shortName];
  const all = (flags.plugin ?? []).flatMap((name) => ["--plugin", name]);
  const command = (verb: string, what: readonly string[]) =>
    ["longshore", verb, ...what, ...placeWords(flags, options.journalFile)].map(shellWord).join(" ");
  const direction = journal?.direction ?? options.direction;
  return {
    seen: looked,
    journalFile: options.journalFile,
    journal,
    resume: command(direction, file === undefined ? all : [file]),
    rollBack: command(direction === "rollback" ? "migrate" : "rollback", file === undefined ? all : plugins),
    uncordonAsked: uncordon,
  };
}

/** The flags with which the same cluster is found again. */
function placeWords(flags: CrossingFlags, journalFile: string): readonly string[] {
  const named = (flag: string, value: string | undefined) => (value === undefined ? [] : [flag, value]);
  return [
    ...(flags.dir === undefined ? [] : ["--dir", clusterDir(flags.dir)]),
    ...named("--kubeconfig", flags.kubeconfig),
    ...named("--context", flags.context),
    ...named("--platform", flags.platform),
    ...named("--node-command", flags.nodeCommand),
    ...named("--garden-kubeconfig", flags.gardenKubeconfig),
    ...named("--shoot", flags.shoot),
    ...(flags.journal === undefined ? [] : ["--journal", journalFile]),
    ...(flags.force === true ? ["--force"] : []),
  ];
}
