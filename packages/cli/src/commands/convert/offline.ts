/** `longshore convert --offline`: from a dump to manifests and a script, without a cluster. */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { offlineConversion } from "@longshore/migration";
import { foreignLines } from "@longshore/runtime";
import type { Command } from "commander";
import { absolute } from "../../environment.ts";
import { exitCodes, UsageError } from "../../exit.ts";
import { repeated } from "../../flags.ts";
import { dumpInputs } from "../../manifest-inputs.ts";
import { writeFiles } from "../write-files.ts";
import { type ConvertFlags, planOptions } from "./convert-flags.ts";
import { counted, refusedWords } from "./convert-report.ts";

/** Flags of a conversion from a dump. */
export interface OfflineFlags extends ConvertFlags {
  readonly offline?: true;
  readonly filename?: readonly string[];
  readonly outputDir?: string;
  readonly force?: true;
}

/** Adds them. */
export function withOffline(command: Command): Command {
  return command
    .option(
      "--offline",
      "write manifests and scripts of kubectl commands, there and back, from a dump of the cluster",
    )
    .option(
      "-f, --filename <file>",
      "with --offline: a file or directory of the dump, or - for standard input; may be repeated",
      repeated,
    )
    .option("--output-dir <dir>", "with --offline: where the files are written")
    .option("--force", "with --offline: write over files that are there");
}

/** Writes the files, and says what is refused. @throws UsageError */
export async function writeOffline(flags: OfflineFlags): Promise<number> {
  const { filename = [], outputDir, kubeconfig, context, dir, force } = flags;
  if (filename.length === 0) throw new UsageError("--filename: name a dump of the cluster");
  if (outputDir === undefined) throw new UsageError("--output-dir: name a directory for the files");
  if (flags.workload !== undefined) {
    throw new UsageError(
      "--workload: a script changes no templates; convert them in the cluster, or translate their manifests",
    );
  }
  if ([kubeconfig, context, dir].some((flag) => flag !== undefined)) {
    throw new UsageError(
      "--offline: give either a dump or a cluster (--kubeconfig, --context, --dir), not both",
    );
  }
  const inputs = await dumpInputs(filename, process.stdin);
  const { files, volumes, objects, refused, gaps } = await offlineConversion(
    inputs,
    await planOptions(flags),
  );
  const to = absolute(outputDir);
  await writeFiles(to, new Map(files.map(({ path, text }) => [path, text])), force === true);
  for (const { path, executable } of files) if (executable) await chmod(join(to, path), 0o755);
  const names = [...volumes.map(({ volume }) => volume), ...objects.map(({ key }) => key)];
  if (flags.json === true) {
    process.stdout.write(`${JSON.stringify({ outputDir: to, volumes: names, refused, gaps })}\n`);
  } else {
    process.stderr.write(gaps.map((gap) => `not in the dump: ${foreignLines(gap, 2000)}\n`).join(""));
    process.stderr.write(refusedWords(refused));
    const back = files.some(({ path }) => path === "undo.sh") ? `, its way back ${join(to, "undo.sh")}` : "";
    const script =
      names.length === 0 ? "no script was written" : `the script is ${join(to, "convert.sh")}${back}`;
    process.stdout.write(`${counted(names)} can be converted, ${refused.length} refused; ${script}\n`);
  }
  return names.length === 0 && refused.length > 0 ? exitCodes.failed : exitCodes.done;
}
