/** `longshore convert`: PersistentVolumes become native ones of their CSI drivers, on the same disks, and back. */

import {
  type ConversionDirection,
  type ConversionEvent,
  type ConversionPlan,
  type ConversionResult,
  carryReplacements,
  conversionRoles,
  conversionStatusOf,
  joinedResults,
  planConversion,
  replacementStatusOf,
  runConversion,
  runInlineConversion,
  StepTimeoutError,
  templateName,
  underCrossingLease,
  waitWords,
} from "@longshore/migration";
import type { Command } from "commander";
import { exitCodes, interruptible } from "../../exit.ts";
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
import { objectJournals, objectsLeftOpen } from "./convert-objects.ts";
import {
  leftClassWords,
  planWords,
  resultJson,
  resultWords,
  showConversion,
  statusWords,
} from "./convert-report.ts";
import { type ConversionTarget, openConversionTarget } from "./convert-target.ts";
import { type OfflineFlags, withOffline, writeOffline } from "./offline.ts";
import { planTemplates, templateJournals } from "./templates-to-carry.ts";
import { journalsOf, unfinished, workToCarry } from "./work-to-carry.ts";

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
    const journals = await journalsOf(target, target.env.kube, signal);
    const objects = await objectJournals(target, target.env.kube, signal);
    const skipped = new Set([...unfinished(journals), ...unfinished(objects)]);
    const made = await planConversion(target.env, options, signal, skipped);
    const asked = { direction: "convert", flags, plugins: options.plugins, target } as const;
    const { templates: inline, refused } = await planTemplates(asked, signal);
    const whole = { ...made, inline, refused: [...made.refused, ...refused] };
    process.stdout.write(flags.json === true ? `${JSON.stringify(whole)}\n` : planWords(whole));
    const count = made.volumes.length + (made.replacements?.length ?? 0) + inline.length;
    return whole.refused.length > 0 && count === 0 ? exitCodes.failed : exitCodes.done;
  });
}

function status(flags: ConvertFlags, signal: AbortSignal): Promise<number> {
  return within(flags, signal, async (target) => {
    const volumes = await journalsOf(target, target.env.kube, signal);
    const inline = await templateJournals(target, target.env.kube, signal);
    const rows = conversionStatusOf(volumes.values(), inline.values());
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
          const isComplete = () => results.every((each) => !hasFailed(each) && each.left.length === 0);
          results.push(await runConversion(env, work.volumes, run, term));
          results.push(
            isComplete()
              ? await runInlineConversion(env, work.inline, run, term)
              : leftOf(work.inline.map(({ planned }) => templateName(planned))),
          );
          results.push(
            isComplete()
              ? await carryReplacements(env, work.objects, run, term)
              : leftOf(work.objects.map(({ planned }) => planned.key)),
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

const hasFailed = ({ failed }: ConversionResult): boolean => failed.length > 0;

/** Of units that were not begun. */
const leftOf = (left: readonly string[]): ConversionResult => ({
  converted: [],
  failed: [],
  left,
  elapsedMs: 0,
});
