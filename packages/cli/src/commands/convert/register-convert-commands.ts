/** `longshore convert`: PersistentVolumes become native ones of their CSI drivers, on the same disks, and back. */

import type { KubeClient } from "@longshore/kube";
import {
  type ConversionDirection,
  type ConversionEvent,
  type ConversionPlan,
  type ConversionResult,
  carryReplacements,
  conversionRoles,
  conversionStatusOf,
  isUnfinishedConversion,
  joinedResults,
  newJournal,
  originalVolume,
  planConversion,
  planUndo,
  planUndoReplacements,
  type ReplacementJournal,
  readJournals,
  replacementStatusOf,
  runConversion,
  StepTimeoutError,
  underCrossingLease,
  type VolumeJournal,
  waitWords,
} from "@longshore/migration";
import type { Command } from "commander";
import { exitCodes, interruptible, UsageError } from "../../exit.ts";
import { createProgress } from "../../terminal.ts";
import {
  type ConvertFlags,
  planOptions,
  requireChoice,
  runHelp,
  runOptions,
  withRules,
  withRun,
  withTarget,
  withVolumes,
} from "./convert-flags.ts";
import { isObjectToUndo, objectJournals, objectsLeftOpen, objectsToBegin } from "./convert-objects.ts";
import {
  leftClassWords,
  planWords,
  refusedWords,
  resultJson,
  resultWords,
  showConversion,
  statusWords,
} from "./convert-report.ts";
import { type ConversionTarget, openConversionTarget } from "./convert-target.ts";
import { type OfflineFlags, withOffline, writeOffline } from "./offline.ts";

/** Adds `convert` and the verbs below it. */
export function registerConvertCommands(program: Command): void {
  const convert = program
    .command("convert")
    .description(
      "make PersistentVolumes native ones of their CSI drivers, on the same disks, without copying",
    );
  const add = (command: Command, work: (flags: ConvertFlags, signal: AbortSignal) => Promise<number>) =>
    command.action(async (flags: ConvertFlags) => {
      const code = await interruptible((signal) => work(flags, signal));
      if (code !== exitCodes.done) process.exitCode = code;
    });
  const planning = convert
    .command("plan", { isDefault: true })
    .description("what would become of each volume, as a diff, and what is refused; changes nothing");
  add(withOffline(withRules(withVolumes(withTarget(planning)))), plan);
  const running = convert
    .command("run")
    .description("carry the volumes, or go on with a run that was interrupted");
  add(withRun(withRules(withVolumes(withTarget(running)))), (flags, signal) =>
    carry("convert", flags, signal),
  ).addHelpText("after", runHelp);
  const undoing = convert
    .command("undo")
    .description("put the volumes back as they were, while the API server accepts that");
  add(withRun(withVolumes(withTarget(undoing))), (flags, signal) => carry("undo", flags, signal)).addHelpText(
    "after",
    runHelp,
  );
  const showing = convert
    .command("status")
    .description("which volumes have been converted, and what is unfinished");
  add(withTarget(showing), status);
}

async function within<T>(
  flags: ConvertFlags,
  signal: AbortSignal,
  work: (target: ConversionTarget) => Promise<T>,
): Promise<T> {
  const target = await openConversionTarget(flags, signal);
  try {
    return await work(target);
  } finally {
    await target.close();
  }
}

async function plan(flags: OfflineFlags, signal: AbortSignal): Promise<number> {
  if (flags.offline === true) return writeOffline(flags);
  const options = await planOptions(flags);
  return within(flags, signal, async (target) => {
    const journals = await journalsOf(target, target.env.kube, signal);
    const objects = await objectJournals(target, target.env.kube, signal);
    const skipped = new Set([...unfinished(journals), ...unfinished(objects)]);
    const made = await planConversion(target.env, options, signal, skipped);
    process.stdout.write(flags.json === true ? `${JSON.stringify(made)}\n` : planWords(made));
    const isEmpty = made.volumes.length === 0 && made.replacements?.length === 0;
    return made.refused.length > 0 && isEmpty ? exitCodes.failed : exitCodes.done;
  });
}

function status(flags: ConvertFlags, signal: AbortSignal): Promise<number> {
  return within(flags, signal, async (target) => {
    const rows = conversionStatusOf((await journalsOf(target, target.env.kube, signal)).values());
    const objects = replacementStatusOf((await objectJournals(target, target.env.kube, signal)).values());
    const text =
      flags.json === true ? `${JSON.stringify({ volumes: rows, objects })}\n` : statusWords(rows, objects);
    process.stdout.write(text);
    return exitCodes.done;
  });
}

async function carry(
  direction: ConversionDirection,
  flags: ConvertFlags,
  signal: AbortSignal,
): Promise<number> {
  if (flags.printRbac === true) {
    const { dump } = await import("js-yaml");
    const roles = conversionRoles().map((role) => dump(role, { noRefs: true }));
    process.stdout.write(roles.join("---\n"));
    return exitCodes.done;
  }
  requireChoice(flags);
  const options = await planOptions(flags);
  const ran = runOptions(flags);
  const progress = createProgress(flags.json);
  const jsonLine = (event: ConversionEvent) => process.stderr.write(`${JSON.stringify(event)}\n`);
  const onEvent = flags.json === true ? jsonLine : showConversion(progress);
  return within(flags, signal, async (target) => {
    const { identity, release } = await target.lock();
    try {
      const onWaiting = (wait: Parameters<typeof waitWords>[0]) =>
        progress.status(`  … waits for ${waitWords(wait)}`);
      return await underCrossingLease(target.env, { identity, onWaiting }, signal, async (kube, term) => {
        progress.clear();
        const env = { ...target.env, kube };
        const run = { ...ran, journalDir: target.journalDir, onEvent };
        // An object may be away: nothing is planned before it is there again.
        const open = await objectsLeftOpen(target, kube, direction, term);
        const results = [await carryReplacements(env, open, run, term)];
        let classes: NonNullable<ConversionPlan["classes"]> = [];
        if (!results.some(hasFailed)) {
          const work = await workToCarry({ direction, flags, options, target }, kube, term);
          if (work === undefined) return exitCodes.failed;
          classes = work.classes;
          results.push(await runConversion(env, work.volumes, run, term));
          const isComplete = results.every((each) => !hasFailed(each) && each.left.length === 0);
          results.push(
            isComplete
              ? await carryReplacements(env, work.objects, run, term)
              : {
                  converted: [],
                  failed: [],
                  left: work.objects.map(({ planned }) => planned.key),
                  elapsedMs: 0,
                },
          );
        }
        const result = joinedResults(results);
        progress.clear();
        const verb = direction === "convert" ? "converted" : "undone";
        process.stdout.write(flags.json === true ? resultJson(result) : resultWords(verb, result));
        if (flags.json !== true) process.stdout.write(leftClassWords(classes));
        if (result.failed.length > 0) {
          const isLate = result.failed.every(({ error }) => error instanceof StepTimeoutError);
          return isLate ? exitCodes.timedOut : exitCodes.failed;
        }
        return result.left.length > 0 ? exitCodes.partly : exitCodes.done;
      });
    } finally {
      progress.clear();
      release();
    }
  });
}

interface Asked {
  readonly direction: ConversionDirection;
  readonly flags: ConvertFlags;
  readonly options: Awaited<ReturnType<typeof planOptions>>;
  readonly target: ConversionTarget;
}

/** What a run carries. */
interface Work {
  readonly volumes: readonly VolumeJournal[];
  readonly objects: readonly ReplacementJournal[];
  /** Classes that stay as they are. */
  readonly classes: NonNullable<ConversionPlan["classes"]>;
}

const hasFailed = ({ failed }: ConversionResult): boolean => failed.length > 0;

/** What an earlier run has left, and then what is new; undefined where something is refused. */
async function workToCarry(asked: Asked, kube: KubeClient, signal: AbortSignal): Promise<Work | undefined> {
  const { direction, flags, options, target } = asked;
  const known = await journalsOf(target, kube, signal);
  const open = [...known.values()].filter(isUnfinishedConversion);
  const others = open.filter((journal) => journal.direction !== direction);
  if (direction === "convert" && others.length > 0) {
    const names = others.map(originalVolume).join(", ");
    throw new UsageError(`an undo of ${names} is unfinished: end it first with longshore convert undo`);
  }
  const resumed = open.filter((journal) => journal.direction === direction);
  const env = { ...target.env, kube };
  const made: PlannedWork =
    direction === "convert"
      ? await planConversion(env, options, signal, unfinished(known))
      : await plannedUndo(asked, known, kube, signal);
  const json = flags.json === true;
  if (made.refused.length > 0) {
    if (json) process.stdout.write(`${JSON.stringify({ kind: "refused", refused: made.refused })}\n`);
    else process.stderr.write(refusedWords(made.refused));
    if (flags.skipRefused !== true) {
      if (!json) process.stderr.write("nothing was changed; --skip-refused leaves these out\n");
      return undefined;
    }
  }
  return {
    volumes: [...resumed, ...freshJournals(made.volumes, known, asked)],
    objects: await objectsToBegin(target, kube, made.replacements ?? [], direction, signal),
    classes: made.classes ?? [],
  };
}

type PlannedWork = Pick<ConversionPlan, "volumes" | "refused" | "classes" | "replacements">;

async function plannedUndo(
  asked: Asked,
  known: ReadonlyMap<string, VolumeJournal>,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<PlannedWork> {
  const { options, target } = asked;
  const ofVolumes = [...known.values()].filter((journal) => isToUndo(journal, asked));
  const objects = [...(await objectJournals(target, kube, signal)).values()];
  const { volumes, refused } = await planUndo(kube, ofVolumes, options, signal);
  const back = await planUndoReplacements(
    kube,
    objects.filter((journal) => isObjectToUndo(journal, options)),
    signal,
  );
  return { volumes, refused: [...refused, ...back.refused], replacements: back.replacements };
}

function freshJournals(
  volumes: ConversionPlan["volumes"],
  known: ReadonlyMap<string, VolumeJournal>,
  { direction, target }: Asked,
): readonly VolumeJournal[] {
  return volumes.map((planned) => {
    const name = direction === "convert" ? planned.volume : (planned.toAfter.metadata?.name ?? "");
    return newJournal(planned, target.clusterId, direction, known.get(name));
  });
}

/** Of a journal whose volume is, or is becoming, a converted one. */
function isToUndo(journal: VolumeJournal, { flags, options }: Asked): boolean {
  if (journal.direction === "undo" || options.noVolumes === true) return false;
  const { planned } = journal;
  const names = [planned.volume, planned.toAfter.metadata?.name];
  if (flags.selector !== undefined) {
    throw new UsageError(
      "--selector: an undo is chosen by --pv, --namespace or --plugin, as the journals know these",
    );
  }
  return (
    (flags.pv?.some((name) => names.includes(name)) ?? true) &&
    (flags.namespace?.includes(planned.claim.namespace) ?? true) &&
    (options.plugins?.includes(planned.plugin) ?? true)
  );
}

function journalsOf({ env, clusterId, journalDir }: ConversionTarget, kube: KubeClient, signal: AbortSignal) {
  return readJournals({ kube, host: env.host, dir: journalDir }, clusterId, signal);
}

function unfinished(journals: ReadonlyMap<string, { readonly finishedAt?: string }>): ReadonlySet<string> {
  return new Set(
    [...journals].filter(([, { finishedAt }]) => finishedAt === undefined).map(([name]) => name),
  );
}
