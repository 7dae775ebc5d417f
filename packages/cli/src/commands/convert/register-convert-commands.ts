/** `longshore convert`: PersistentVolumes become native ones of their CSI drivers, on the same disks, and back. */

import { type KubeClient, parseLabelSelector } from "@longshore/kube";
import {
  type ConversionDirection,
  type ConversionEvent,
  type ConversionPlan,
  conversionRoles,
  conversionStatusOf,
  type InlineJournal,
  isUnfinishedConversion,
  newJournal,
  originalVolume,
  planConversion,
  planUndo,
  readJournals,
  runConversion,
  runInlineConversion,
  StepTimeoutError,
  underCrossingLease,
  unfinishedChoice,
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
  withSizes,
  withTarget,
  withVolumes,
} from "./convert-flags.ts";
import {
  bothResults,
  planWords,
  refusedWords,
  resultJson,
  resultWords,
  showConversion,
  statusWords,
  unfinishedWords,
  withLeft,
} from "./convert-report.ts";
import { type ConversionTarget, openConversionTarget } from "./convert-target.ts";
import { type OfflineFlags, withOffline, writeOffline } from "./offline.ts";
import { areVolumesChosen, planTemplates, templateJournals, templatesToCarry } from "./templates-to-carry.ts";

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
  add(withOffline(withSizes(withRules(withVolumes(withTarget(planning))))), plan);
  const running = convert
    .command("run")
    .description("carry the volumes, or go on with a run that was interrupted");
  add(withRun(withSizes(withRules(withVolumes(withTarget(running))))), (flags, signal) =>
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
    const made = areVolumesChosen(flags)
      ? await planConversion(
          target.env,
          options,
          signal,
          unfinished(await journalsOf(target, target.env.kube, signal)),
        )
      : { volumes: [], refused: [] };
    const asked = { direction: "convert", flags, plugins: options.plugins, target } as const;
    const { templates, refused } = await planTemplates(asked, signal);
    const whole = { ...made, templates, refused: [...made.refused, ...refused] };
    process.stdout.write(flags.json === true ? `${JSON.stringify(whole)}\n` : planWords(whole));
    const isAllRefused = whole.refused.length > 0 && whole.volumes.length + templates.length === 0;
    return isAllRefused ? exitCodes.failed : exitCodes.done;
  });
}

function status(flags: ConvertFlags, signal: AbortSignal): Promise<number> {
  return within(flags, signal, async (target) => {
    const volumes = await journalsOf(target, target.env.kube, signal);
    const templates = await templateJournals(target, target.env.kube, signal);
    const rows = conversionStatusOf(volumes.values(), templates.values());
    process.stdout.write(flags.json === true ? `${JSON.stringify({ volumes: rows })}\n` : statusWords(rows));
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
        const journals = await journalsToCarry({ direction, flags, options, target }, kube, term);
        if (journals === undefined) return exitCodes.failed;
        const { journalDir } = target;
        const env = { ...target.env, kube };
        const settings = { ...ran, journalDir, onEvent };
        const volumes = await runConversion(env, journals.volumes, settings, term);
        const isStopped = volumes.failed.length + volumes.left.length > 0;
        const result = isStopped
          ? withLeft(volumes, journals.templates)
          : bothResults(volumes, await runInlineConversion(env, journals.templates, settings, term));
        progress.clear();
        const verb = direction === "convert" ? "converted" : "undone";
        process.stdout.write(flags.json === true ? resultJson(result) : resultWords(verb, result));
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

interface Carried {
  readonly volumes: readonly VolumeJournal[];
  readonly templates: readonly InlineJournal[];
}

/** What an earlier run has left of what is chosen, and then what is new; undefined where something is refused. */
async function journalsToCarry(
  asked: Asked,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<Carried | undefined> {
  const { direction, flags, options, target } = asked;
  const volumes = areVolumesChosen(flags)
    ? await volumesToCarry(asked, kube, signal)
    : { journals: [], refused: [], left: [] };
  const about = { direction, flags, plugins: options.plugins, target };
  const templates = await templatesToCarry(about, kube, signal);
  const refused = [...volumes.refused, ...templates.refused];
  const left = [...volumes.left, ...templates.left];
  const json = flags.json === true;
  if (left.length > 0) {
    if (json) process.stdout.write(`${JSON.stringify({ kind: "unfinished", volumes: left })}\n`);
    else process.stderr.write(unfinishedWords(left));
  }
  if (refused.length > 0) {
    if (json) process.stdout.write(`${JSON.stringify({ kind: "refused", refused })}\n`);
    else process.stderr.write(refusedWords(refused));
    if (flags.skipRefused !== true) {
      if (!json) process.stderr.write("nothing was changed; --skip-refused leaves these out\n");
      return undefined;
    }
  }
  return { volumes: volumes.journals, templates: templates.journals };
}

async function volumesToCarry(asked: Asked, kube: KubeClient, signal: AbortSignal) {
  const { direction, options, target } = asked;
  const known = await journalsOf(target, kube, signal);
  const open = [...known.values()].filter(isUnfinishedConversion);
  const others = open.filter((journal) => journal.direction !== direction && isMeant(journal, asked));
  if (direction === "convert" && others.length > 0) {
    const names = others.map(originalVolume).join(", ");
    throw new UsageError(`an undo of ${names} is unfinished: end it first with longshore convert undo`);
  }
  const same = open.filter((journal) => journal.direction === direction);
  const { carried, left } = unfinishedChoice(same, (journal) => isMeant(journal, asked));
  const made =
    direction === "convert"
      ? await planConversion({ ...target.env, kube }, options, signal, unfinished(known))
      : await planUndo(
          kube,
          [...known.values()].filter((journal) => isToUndo(journal, asked)),
          options,
          signal,
        );
  // An unfinished conversion of an undo's choice is undone; the others stay as they are.
  const apart = open.filter((journal) => journal.direction !== direction && !isMeant(journal, asked));
  return {
    journals: [...carried, ...freshJournals(made.volumes, known, asked)],
    refused: made.refused,
    left: [...left, ...apart].map(originalVolume),
  };
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
function isToUndo(journal: VolumeJournal, asked: Asked): boolean {
  if (asked.flags.selector !== undefined) {
    throw new UsageError(
      "--selector: an undo is chosen by --pv, --namespace or --plugin, as the journals know these",
    );
  }
  return journal.direction === "convert" && isMeant(journal, asked);
}

/** True for a journal of a volume that the flags choose. */
function isMeant({ planned }: VolumeJournal, { flags, options }: Asked): boolean {
  const names = [planned.volume, planned.toAfter.metadata?.name];
  const { rule, selector, plugins } = options;
  return (
    (flags.pv?.some((name) => names.includes(name)) ?? true) &&
    (flags.namespace?.includes(planned.claim.namespace) ?? true) &&
    (plugins?.includes(planned.plugin) ?? true) &&
    (rule === undefined || planned.driver === rule.toDriver) &&
    (selector === undefined ||
      parseLabelSelector(selector).matches(planned.claimBefore.metadata?.labels ?? {}))
  );
}

function journalsOf({ env, clusterId, journalDir }: ConversionTarget, kube: KubeClient, signal: AbortSignal) {
  return readJournals({ kube, host: env.host, dir: journalDir }, clusterId, signal);
}

function unfinished(journals: ReadonlyMap<string, VolumeJournal>): ReadonlySet<string> {
  return new Set(
    [...journals].filter(([, journal]) => isUnfinishedConversion(journal)).map(([name]) => name),
  );
}
