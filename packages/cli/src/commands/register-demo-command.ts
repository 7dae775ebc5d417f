/** `longshore demo`: a whole cluster, the crossing and the way back, and the proof. */
import { writeFileSync } from "node:fs";
import { type DemoReport, isProof, pluginsNamed, runProcessDemo } from "@longshore/local";
import type { Command } from "commander";
import pc from "picocolors";
import { absolute, commandEnv, hostForm, longshoreCommand, passingClusterDir } from "../environment.ts";
import { exitCodes, interruptible } from "../exit.ts";
import { formOption, jsonFileOption } from "../flags.ts";
import { createProgress, seconds, showCrossing, table } from "../terminal.ts";
import { pluginsOption } from "./plugin-flag.ts";

interface DemoFlags {
  readonly plugin?: readonly string[];
  readonly output: "table" | "json";
  readonly json?: string | true;
  readonly dir?: string;
  readonly quiet?: boolean;
}

/** Adds the verb. */
export function registerDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("bring up a cluster, carry it to CSI and back under load, and prove that nothing was lost")
    .addOption(pluginsOption("the in-tree plugin whose volumes are carried (default: aws-ebs)"))
    .addOption(formOption(["table", "json"]))
    .addOption(
      jsonFileOption("print the report as JSON, as -o json does; with a file, write it there as well"),
    )
    .option("--dir <dir>", "cluster directory (default: a new one, removed afterwards)")
    .option("-q, --quiet", "no progress")
    .action((flags: DemoFlags) => interruptible((signal) => demo(flags, signal), ["SIGHUP"]));
}

async function demo(flags: DemoFlags, signal: AbortSignal): Promise<void> {
  const plugins = flags.plugin === undefined ? undefined : pluginsNamed(flags.plugin);
  const progress = createProgress(flags.quiet);
  const { dir, release } = passingClusterDir(flags.dir);
  const form = hostForm();
  const how = form === "kernel" ? "loop devices, ext4 and mounts" : "directories and links (no root)";
  progress.line(pc.bold(`A Kubernetes cluster of three nodes on this machine, with ${how}`));
  const env = commandEnv(form);
  const report = await runProcessDemo(
    env,
    {
      dir,
      hostForm: form,
      ...(plugins === undefined ? {} : { plugins }),
      command: longshoreCommand,
      onStatus: (text) => progress.status(`… ${text}`),
      onStep: (name, ms) => progress.line(`${pc.green("✓")} ${name} ${pc.dim(seconds(ms))}`),
      onCrossing: showCrossing(progress),
    },
    signal,
  ).finally(() => {
    progress.clear();
    release();
  });
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  process.stdout.write(flags.json === true || flags.output === "json" ? text : reportText(report));
  // Not by renaming: it may be a pipe or a device.
  if (typeof flags.json === "string") writeFileSync(absolute(flags.json), text, { mode: 0o644 });
  if (!isProof(report)) {
    process.stderr.write("longshore: the demo did not prove what it claims; see the figures above\n");
    process.exitCode = exitCodes.failed;
  }
}

function reportText(report: DemoReport): string {
  const isOne = report.plugins.length === 1;
  return `\n${table([
    [...(isOne ? [] : ["PLUGIN"]), "VOLUME", "IN-TREE HANDLE", "CSI HANDLE", "NODES"],
    ...report.volumes.map((v) => [
      ...(isOne ? [] : [v.plugin]),
      v.pv,
      v.inTreeHandle,
      v.csiHandle,
      v.nodes.join(" → "),
    ]),
  ])}\n${isOne ? "" : `${pluginTable(report)}\n`}${table([
    ["acknowledged writes", String(report.acknowledgedWrites)],
    ["lost writes", String(report.lostWrites)],
    ["in-tree calls after migration", String(report.inTreeCallsAfterMigration)],
    ["stranded attachments", String(report.strandedAttachments)],
    ["elapsed", seconds(report.elapsedMs)],
  ])}`;
}

/** What the disk cloud has counted, by plugin. */
function pluginTable({ plugins }: DemoReport): string {
  return table([
    ["PLUGIN", "IN-TREE CALLS AFTER MIGRATION", "CALLS OF THE DRIVER"],
    ...plugins.map((p) => [p.plugin, String(p.inTreeCallsAfterMigration), String(p.csiCallsAfterMigration)]),
  ]);
}
