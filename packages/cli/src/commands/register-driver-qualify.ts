/** `longshore driver qualify`: may this driver take over from the in-tree code? A table of parity, and the verdict. */
import { writeFileSync } from "node:fs";
import {
  type BehaviourResult,
  commandWords,
  type FeatureResult,
  type QualificationReport,
  reasonsAgainst,
  runProcessQualification,
  type Skippable,
  skippables,
  type Verdict,
  verdictOf,
} from "@longshore/local";
import { type Command, Option } from "commander";
import pc from "picocolors";
import { absolute, commandEnv, hostForm, longshoreCommand, passingClusterDir } from "../environment.ts";
import { exitCodes, failureText, InterruptedError, interruptible, UsageError } from "../exit.ts";
import { duration, formOption, jsonFileOption } from "../flags.ts";
import { createProgress, seconds, table } from "../terminal.ts";
import { driverPlaceholderHelp } from "./driver-placeholder-help.ts";
import { onePluginOption } from "./plugin-flag.ts";

interface QualifyFlags {
  readonly plugin: string;
  readonly driverCmd?: string;
  readonly output: "table" | "json";
  readonly json?: string | true;
  readonly skip?: readonly Skippable[];
  readonly dir?: string;
  readonly timeout: string;
  readonly quiet?: boolean;
}

const help = `
A cluster is brought up on this machine, a volume is made by the in-tree code, the cluster is carried over to the
driver, and everything that in-tree volumes do is done through the driver. A behaviour counts when the driver's own
call log shows that the driver served it. Exit code 0: the driver may be promoted; 1: it may not; 2: wrong usage;
4: it may, except for what was skipped. The report as JSON is given in each case, but for flags that cannot be read.

A driver of your own is started once as the controller and once on each node. It must call itself what the plugin's
driver is called (ebs.csi.aws.com for aws-ebs). No shell is involved. In its command stand for what differs:
${driverPlaceholderHelp}

Examples:
  longshore driver qualify --plugin aws-ebs
  longshore driver qualify --plugin aws-ebs --driver-cmd "./driver --endpoint {endpoint} --node-id {node-id}"
  longshore driver qualify --plugin aws-ebs --json report.json`;

/** Adds the verb. */
export function registerDriverQualify(driver: Command): void {
  driver
    .command("qualify")
    .description(
      "run every in-tree behaviour through a driver with migration on, and say whether it may take over",
    )
    .addOption(onePluginOption("the in-tree plugin, e.g. aws-ebs").makeOptionMandatory())
    .option("--driver-cmd <command>", "command of the driver (default: the reference driver)")
    .addOption(
      new Option("--skip <name>", "what is not to be tried; may be repeated")
        .choices(skippables)
        .argParser<readonly Skippable[]>(skippable),
    )
    .addOption(formOption(["table", "json"]))
    .addOption(
      jsonFileOption("print the report as JSON, as -o json does; with a file, write it there instead"),
    )
    .option("--dir <dir>", "cluster directory (default: a new one, removed afterwards)")
    .option("--timeout <duration>", "longest that one behaviour may take", "2m")
    .option("-q, --quiet", "no progress")
    .addHelpText("after", help)
    .action((flags: QualifyFlags) => interruptible((signal) => qualify(flags, signal), ["SIGHUP"]));
}

function skippable(given: string, before: readonly Skippable[] = []): readonly Skippable[] {
  const name = skippables.find((known) => known === given);
  if (name !== undefined) return [...before, name];
  throw new UsageError(`--skip: "${given}" is not one of ${skippables.join(", ")}`);
}

async function qualify(flags: QualifyFlags, signal: AbortSignal): Promise<void> {
  const timeoutMs = duration("--timeout", flags.timeout);
  const driverCommand = flags.driverCmd === undefined ? undefined : commandWords(flags.driverCmd);
  const progress = createProgress(flags.quiet);
  const { dir, release } = passingClusterDir(flags.dir);
  const form = hostForm();
  const behaviours: BehaviourResult[] = [];
  const outcome = await runProcessQualification(
    commandEnv(form),
    {
      dir,
      hostForm: form,
      command: longshoreCommand,
      plugin: flags.plugin,
      behaviourTimeoutMs: timeoutMs,
      ...(flags.skip === undefined ? {} : { skip: flags.skip }),
      ...(driverCommand === undefined ? {} : { driverCommand }),
      onStatus: (text) => progress.status(`… ${text}`),
      onResult: (result) => {
        behaviours.push(result);
        progress.line(`${mark(result)} ${result.behaviour} ${pc.dim(seconds(result.ms))}`);
      },
    },
    signal,
  )
    .catch((error: unknown) => ({ error }))
    .finally(() => {
      progress.clear();
      release();
    });
  if ("error" in outcome) {
    // What reads the report gets one, whatever happens; what was seen until then is in it.
    const error = signal.aborted ? new InterruptedError() : outcome.error;
    const reason = `the qualification did not come to its end: ${failureText(error)}`;
    deliver(flags, {
      verdict: "not promotable",
      promotable: false,
      reasons: [reason],
      plugin: flags.plugin,
      behaviours,
    });
    throw outcome.error;
  }
  const verdict = verdictOf(outcome);
  const reasons = reasonsAgainst(outcome);
  deliver(flags, { verdict, promotable: verdict === "promotable", reasons, ...outcome });
  if (flags.output === "table") process.stdout.write(textOf(outcome, reasons));
  process.exitCode = codes[verdict];
}

const codes: Readonly<Record<Verdict, number>> = {
  promotable: exitCodes.done,
  "promotable except": exitCodes.partly,
  "not promotable": exitCodes.failed,
};

/** Writes the report as JSON wherever that was asked for. */
function deliver({ json, output }: QualifyFlags, report: object): void {
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  if (typeof json === "string") writeFileSync(absolute(json), text, { mode: 0o644 });
  if (output === "json" || json === true) process.stdout.write(text);
}

function mark({ verdict }: BehaviourResult): string {
  const marks = {
    driver: pc.green("✓"),
    failed: pc.red("✗"),
    "not verified": pc.red("?"),
    "not in-tree": pc.dim("-"),
    skipped: pc.dim("-"),
  } as const;
  return marks[verdict];
}

function textOf(report: QualificationReport, reasons: readonly string[]): string {
  const rows = report.behaviours.map(({ behaviour, verdict, calls, detail }) => [
    behaviour,
    verdict === "driver" ? "served by the driver" : verdict,
    calls.join(", ") || "-",
    detail,
  ]);
  const features = report.features.map(({ feature, verdict, inTree, migrated }) => [
    feature,
    verdict,
    outcomeText(inTree),
    outcomeText(migrated),
  ]);
  const { differences } = report;
  const parity =
    differences === undefined
      ? "not compared"
      : differences.length === 0
        ? "equal"
        : `${differences.length} differences`;
  const except =
    report.skipped.length === 0 ? "" : `, except for what was skipped: ${report.skipped.join(", ")}`;
  const verdict =
    reasons.length === 0
      ? `${report.driverName} may take over from ${report.plugin}${except}.\n`
      : `${report.driverName} must not take over from ${report.plugin} yet:\n${reasons.map((r) => `  ${r}\n`).join("")}`;
  const refused = [...new Set(report.refusedCalls.map(({ rpc, code }) => `${rpc} ${code}`))];
  return `\n${table([["BEHAVIOUR", "VERDICT", "CALLS OF THE DRIVER", "WHAT WAS SEEN"], ...rows])}\n${table([["FEATURE", "VERDICT", "IN-TREE", "MIGRATED"], ...features])}\n${table(
    [
      ["migrated PersistentVolume beside the in-tree one", parity],
      ...report.losses.map((loss) => ["  that no driver can bring back", loss]),
      ["in-tree calls after the migration", String(report.inTreeCalls)],
      ["calls that the driver refused", refused.join(", ") || "none"],
      ["elapsed", seconds(report.elapsedMs)],
    ],
  )}\n${verdict}`;
}

function outcomeText(outcome: FeatureResult["inTree"]): string {
  return outcome.kind === "served" ? "served" : `refused by ${outcome.object}: ${outcome.sentence}`;
}
