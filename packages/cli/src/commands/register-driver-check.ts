/** `longshore driver check`: does a driver keep the CSI contract? Runs the checks of `@longshore/conformance` by flags. */
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type {
  ConformanceEvent,
  ConformanceOptions,
  ConformanceReport,
  DriverSecrets,
} from "@longshore/conformance";
import type { Clock } from "@longshore/runtime";
import type { Command } from "commander";
import { Option } from "commander";
import { absolute, hostForm } from "../environment.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { withForms } from "../flags.ts";
import { createProgress, type Progress, seconds } from "../terminal.ts";
import {
  type CheckFlags,
  commandWords,
  reportInFlags,
  selection,
  suiteOptions,
} from "./driver-check/check-flags.ts";

const help = `
Exit codes: 0 no check of a MUST has failed; 1 some check failed, or what the checks made could not be removed;
2 wrong usage, or no driver can be reached; 130 interrupted, after everything that was made has been removed.

Run it where the node service runs, as a user who may see the paths below --staging-dir and --target-dir. A driver
that mounts file systems needs root; one that does not, does not.

--secrets reads a YAML file as csi-sanity does: CreateVolumeSecret: {token: …}, NodeStageVolumeSecret: …
--restart-cmd runs without a shell. It must end the driver at once (kill -9), start it again in the background, and end.

Examples:
  longshore driver check --endpoint unix:///tmp/csi.sock
  longshore driver check --endpoint unix:///csi/csi.sock --focus '^controller\\.' --parameters type=gp3,encrypted=true
  longshore driver check --endpoint /csi/node.sock --controller-endpoint /csi/controller.sock \\
    --secrets secrets.yaml --restart-cmd './restart-driver.sh' -o junit --output-file conformance.xml
  longshore driver check --list --focus create-volume`;

const collect = (value: string, before: readonly string[] = []) => [...before, value];

/** Adds the verb below `driver`. */
export function registerDriverCheck(driver: Command): void {
  withForms(driver.command("check"), ["table", "json", "junit"])
    .description("find out whether a CSI driver keeps the contract of the CSI specification")
    .option("--endpoint <endpoint>", "where the driver listens: unix:///path/to/csi.sock")
    .option("--controller-endpoint <endpoint>", "where its controller service listens, if elsewhere")
    .option("--focus <regex>", "run only checks whose id matches; may be repeated", collect)
    .option("--skip <regex>", "skip checks whose id matches; may be repeated", collect)
    .option("--list", "list the checks and what the specification says, without a driver")
    .option(
      "--staging-dir <dir>",
      "directory for staging paths (default: a new one below the temporary directory)",
    )
    .option(
      "--target-dir <dir>",
      "directory for target paths (default: a new one below the temporary directory)",
    )
    .option("--volume-size <size>", "size of the volumes that are made", "1Gi")
    .option("--expand-size <size>", "size to which they are expanded (default: 1Gi more)")
    .option("--parameters <key=value>", "parameters of CreateVolume; may be repeated", collect)
    .option("--snapshot-parameters <key=value>", "parameters of CreateSnapshot; may be repeated", collect)
    .option("--mutable-parameters <key=value>", "parameters that ControllerModifyVolume may set", collect)
    .addOption(
      new Option("--access-type <type>", "how volumes are published")
        .choices(["mount", "block"])
        .default("mount"),
    )
    .option("--fs-type <type>", "file system of mounted volumes (default: the driver's own)")
    .option("--secrets <file>", "YAML file with the secrets of each call, as csi-sanity reads it")
    .option("--second-node <id>", "id of another node with the same topology, to publish a volume to two")
    .option("--fill-node", "also attach as many volumes as the node takes, and one more")
    .option(
      "--restart-cmd <command>",
      "command that kills the driver and starts it again, for checks with a crash",
    )
    .option("--timeout <duration>", "deadline of each call", "60s")
    .option(
      "--patience <duration>",
      "how long to wait for a snapshot or a restarted driver to be ready",
      "2m",
    )
    .option("--repeats <number>", "how often a call is made that may be repeated", "3")
    .option("--parallel <number>", "how many calls are made at a time", "5")
    .option("--output-file <file>", "write the report here instead of to standard output")
    .option("-v, --verbose", "a line for each check in the table")
    .option("-q, --quiet", "no progress")
    .addHelpText("after", help)
    .action((flags: CheckFlags) =>
      // A terminal that is closed must leave nothing of the checks behind either.
      flags.list === true ? list(flags) : interruptible((signal) => check(flags, signal), ["SIGHUP"]),
    );
}

async function list(flags: CheckFlags): Promise<void> {
  const { conformanceChecks } = await import("@longshore/conformance");
  const { listText } = await import("./driver-check/report-text.ts");
  const wanted = selection(flags);
  const shown = conformanceChecks
    .filter(({ id }) => wanted(id))
    .map(({ id, sentence, spec }) => ({ id, sentence, spec }));
  if (flags.output === "junit") throw new UsageError("--list: -o junit is for reports; use table or json");
  deliver(flags, flags.output === "json" ? json(shown) : listText(shown));
}

async function check(flags: CheckFlags, signal: AbortSignal): Promise<void> {
  const { grpcConnector } = await import("@longshore/csi");
  const suite = await import("@longshore/conformance");
  const { kernelHost, systemClock, systemRandom, unprivilegedHost } = await import("@longshore/runtime");
  const { mustBeReachable } = await import("./driver-check/must-be-reachable.ts");
  const fromFlags = suiteOptions(flags, await readSecrets(flags.secrets));
  const total = suite.conformanceChecks.filter(({ id }) => fromFlags.select?.(id)).length;
  if (total === 0) throw new UsageError("no check is left by --focus and --skip: see --list");
  mustBeWritable(flags.outputFile);
  const restart =
    flags.restartCmd === undefined ? undefined : commandWords("--restart-cmd", flags.restartCmd);
  await mustBeReachable("--endpoint", fromFlags.endpoint);
  if (fromFlags.controllerEndpoint !== undefined) {
    await mustBeReachable("--controller-endpoint", fromFlags.controllerEndpoint);
  }
  const dirs = makeDirectories(flags);
  const progress = createProgress(flags.quiet);
  const shown = showChecks(progress, systemClock);
  const options: ConformanceOptions = {
    ...fromFlags,
    stagingDir: dirs.stagingDir,
    targetDir: dirs.targetDir,
    onEvent: shown.onEvent,
    ...(restart === undefined
      ? {}
      : {
          restartDriver: async (restartSignal: AbortSignal) => {
            const { runRestartCommand } = await import("./driver-check/restart-command.ts");
            await runRestartCommand(restart, fromFlags.settleTimeoutMs ?? 120_000, restartSignal);
          },
        }),
  };
  const env = {
    clock: systemClock,
    random: systemRandom,
    connector: grpcConnector({ clock: systemClock }),
    host: hostForm() === "kernel" ? kernelHost() : unprivilegedHost(),
  };
  let report: ConformanceReport;
  try {
    report = reportInFlags(await suite.runConformance(env, options, signal));
  } catch (error) {
    if (error instanceof suite.ConformanceInterruptedError) {
      // What was seen until then is worth as much as before.
      progress.clear();
      await deliverReport(flags, reportInFlags(error.report));
      throw error.cause;
    }
    if (error instanceof suite.DriverUnreachableError)
      throw new UsageError(error.message, { cause: error.cause });
    throw error;
  } finally {
    shown.stop();
    dirs.remove();
  }
  await deliverReport(flags, report);
  if (!suite.isConformant(report)) process.exitCode = exitCodes.failed;
}

async function deliverReport(flags: CheckFlags, report: ConformanceReport): Promise<void> {
  if (flags.output === "json") return deliver(flags, json(report));
  if (flags.output === "junit")
    return deliver(flags, (await import("@longshore/conformance")).junitOf(report));
  const { reportText } = await import("./driver-check/report-text.ts");
  deliver(flags, reportText(report, flags.verbose === true));
}

/** A report that cannot be written must not cost a whole run. @throws UsageError */
function mustBeWritable(outputFile: string | undefined): void {
  if (outputFile === undefined) return;
  const path = absolute(outputFile);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw new UsageError(`--output-file: ${path} is a directory: name a file in it`);
  try {
    accessSync(stat === undefined ? dirname(path) : path, constants.W_OK);
  } catch (error) {
    throw new UsageError(
      `--output-file: ${path} cannot be written (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

function deliver({ outputFile }: CheckFlags, text: string): void {
  if (outputFile === undefined) process.stdout.write(text);
  // Not by renaming: it may be a pipe or a device.
  else writeFileSync(absolute(outputFile), text, { mode: 0o644 });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** The secrets of the file. Neither their values nor the file's text are in an error. */
async function readSecrets(file: string | undefined): Promise<DriverSecrets> {
  if (file === undefined) return {};
  const { driverSecretsOf, SecretsError } = await import("@longshore/conformance");
  const { JSON_SCHEMA, load } = await import("js-yaml");
  let text: string;
  try {
    text = readFileSync(absolute(file), "utf8");
  } catch (error) {
    throw new UsageError(`--secrets: cannot read ${file}`, { cause: error });
  }
  let document: unknown;
  try {
    // The default schema would make a Date of a secret such as 2020-01-01.
    document = load(text, { schema: JSON_SCHEMA });
  } catch (error) {
    const { mark } = error as { readonly mark?: { readonly line: number } };
    throw new UsageError(
      `--secrets: ${file} is not YAML${mark === undefined ? "" : ` (line ${mark.line + 1})`}`,
    );
  }
  try {
    return driverSecretsOf(document);
  } catch (error) {
    if (error instanceof SecretsError) throw new UsageError(`--secrets: ${file}: ${error.message}`);
    throw error;
  }
}

/** The directories for paths of volumes. Those that are made here are removed in the end, if they are empty. */
function makeDirectories(flags: CheckFlags) {
  const made: string[] = [];
  let own: string | undefined;
  const directory = (flag: string, named: string | undefined, name: string) => {
    if (named === undefined && own === undefined) {
      own = realpathSync(mkdtempSync(join(tmpdir(), "longshore-check-")));
      made.push(own);
    }
    const path = named === undefined ? join(own ?? "", name) : absolute(named);
    try {
      const first = mkdirSync(path, { recursive: true, mode: 0o700 });
      if (first !== undefined)
        for (let dir = path; dir.length >= first.length; dir = dirname(dir)) made.push(dir);
      return realpathSync(path);
    } catch (error) {
      throw new UsageError(`${flag}: cannot make the directory ${path}`, { cause: error });
    }
  };
  const stagingDir = directory("--staging-dir", flags.stagingDir, "staging");
  const targetDir = directory("--target-dir", flags.targetDir, "target");
  return {
    stagingDir,
    targetDir,
    remove() {
      // The deepest first: only empty directories are removed.
      for (const path of [...made].sort((a, b) => b.length - a.length)) {
        try {
          rmdirSync(path);
        } catch {
          // What is left in it has been reported.
        }
      }
    },
  };
}

const tickMs = 1000;

/** Says which check runs and which call it waits for; failures stay on the screen. */
function showChecks(progress: Progress, clock: Clock) {
  const nowMs = () => clock.monotonicMs();
  let where = "asking the driver what it is:";
  let rpc = "";
  let sinceMs = nowMs();
  const show = () => {
    const waited = nowMs() - sinceMs;
    progress.status(
      `… ${where}${rpc === "" ? "" : ` ${rpc}`}${waited >= tickMs ? ` ${seconds(waited)}` : ""}`,
    );
  };
  let ticker = clock.timer(tickMs, function tick() {
    show();
    ticker = clock.timer(tickMs, tick);
  });
  return {
    onEvent(event: ConformanceEvent) {
      if (event.kind === "checkStarted") {
        where = `${event.index + 1}/${event.total} ${event.id}`;
        rpc = "";
      } else if (event.kind === "callStarted") rpc = event.rpc;
      else if (event.kind === "cleaningUp") rpc = "cleaning up";
      else {
        const { id, outcome, message } = event.result;
        if (outcome === "failed") progress.line(`✗ ${id}: ${message}`);
        if (outcome === "warned") progress.line(`! ${id}: ${message}`);
        return;
      }
      sinceMs = nowMs();
      show();
    },
    stop() {
      ticker.cancel();
      progress.clear();
    },
  };
}
