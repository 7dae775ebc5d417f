/** `longshore driver qualify`: may this driver take over from the in-tree code? A table of parity, and the verdict. */
import { writeFileSync } from "node:fs";
import {
  type BehaviourResult,
  commandWords,
  type FeatureResult,
  type QualificationReport,
  reasonsAgainst,
  runProcessQualification,
} from "@longshore/local";
import type { Command } from "commander";
import pc from "picocolors";
import { absolute, commandEnv, hostForm, longshoreCommand, passingClusterDir } from "../environment.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { wholeNumber } from "../flags.ts";
import { createProgress, seconds, table } from "../terminal.ts";
import { driverPlaceholderHelp } from "./driver-placeholder-help.ts";
import { onePluginOption } from "./plugin-flag.ts";

interface QualifyFlags {
  readonly plugin: string;
  readonly driverCmd?: string;
  readonly output: string;
  readonly json?: string;
  readonly dir?: string;
  readonly timeout: string;
  readonly quiet?: boolean;
}

const help = `
A cluster is brought up on this machine, a volume is made by the in-tree code, the cluster is carried over to the
driver, and everything that in-tree volumes do is done through the driver. A behaviour counts when the driver's own
call log shows that the driver served it. Exit code 0: the driver may be promoted; 1: it may not; 2: wrong usage.

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
    .option("-o, --output <form>", "what is printed: table or json", "table")
    .option("--json <file>", "also write the report as JSON")
    .option("--dir <dir>", "cluster directory (default: a new one, removed afterwards)")
    .option("--timeout <seconds>", "longest that one behaviour may take", "120")
    .option("-q, --quiet", "no progress")
    .addHelpText("after", help)
    .action((flags: QualifyFlags) => interruptible((signal) => qualify(flags, signal), ["SIGHUP"]));
}

async function qualify(flags: QualifyFlags, signal: AbortSignal): Promise<void> {
  if (flags.output !== "table" && flags.output !== "json") {
    throw new UsageError(`--output: "${flags.output}" is neither table nor json`);
  }
  const timeoutMs = wholeNumber("--timeout", flags.timeout, 1, 3600) * 1000;
  const driverCommand = flags.driverCmd === undefined ? undefined : commandWords(flags.driverCmd);
  const progress = createProgress(flags.quiet);
  const { dir, release } = passingClusterDir(flags.dir);
  const form = hostForm();
  const report = await runProcessQualification(
    commandEnv(form),
    {
      dir,
      hostForm: form,
      command: longshoreCommand,
      plugin: flags.plugin,
      behaviourTimeoutMs: timeoutMs,
      ...(driverCommand === undefined ? {} : { driverCommand }),
      onStatus: (text) => progress.status(`… ${text}`),
      onResult: (result) =>
        progress.line(`${mark(result)} ${result.behaviour} ${pc.dim(seconds(result.ms))}`),
    },
    signal,
  ).finally(() => {
    progress.clear();
    release();
  });
  const reasons = reasonsAgainst(report);
  const result = { promotable: reasons.length === 0, reasons, ...report };
  if (flags.json !== undefined) {
    writeFileSync(absolute(flags.json), `${JSON.stringify(result, undefined, 2)}\n`, { mode: 0o644 });
  }
  process.stdout.write(
    flags.output === "json" ? `${JSON.stringify(result, undefined, 2)}\n` : textOf(report, reasons),
  );
  if (reasons.length > 0) process.exitCode = exitCodes.failed;
}

function mark({ verdict }: BehaviourResult): string {
  const marks = {
    driver: pc.green("✓"),
    failed: pc.red("✗"),
    "not in-tree": pc.dim("-"),
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
  const verdict =
    reasons.length === 0
      ? `${report.driverName} may take over from ${report.plugin}.\n`
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
