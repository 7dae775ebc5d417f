/** `longshore flexvolume`: installs, lists and checks Flexvolume drivers. */
import { mkdtempSync, realpathSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { FlexVolumeExpansion } from "@longshore/volumes";
import type { Command } from "commander";
import { absolute, hostForm } from "../environment.ts";
import { exitCodes, interruptible, UsageError } from "../exit.ts";
import { withForms } from "../flags.ts";
import { checkLine, checksSummary, driversText } from "./flexvolume/driver-texts.ts";

const installHelp = `
The program is copied under a name that no prober sees and then renamed, so that no kubelet runs it half written. A cluster
of \`longshore cluster up\` looks in the directory flexvolume below its own.

Examples:
  longshore flexvolume install ./nfs --vendor example.com
  longshore flexvolume install ./build/nfs-driver --vendor example.com --name nfs --dir /opt/flexvolume`;

const listHelp = `
Runs the init of each driver. Exit codes: 0 all drivers work; 1 some driver does not; 2 wrong usage.`;

const checkHelp = `
Makes the calls of the protocol in the order in which controller and node make them, with a volume named longshore-check, and
takes back what they made. A driver that mounts needs root. Exit codes: 0 all checks that ran have passed; 1 some check
failed; 2 wrong usage; 130 interrupted, after everything that was made has been taken back.

Examples:
  longshore flexvolume check ./nfs --options server=10.0.0.1,share=/export
  longshore flexvolume check ./loop --expand 64Mi:128Mi
  longshore flexvolume check example.com/nfs --dir /usr/libexec/kubernetes/kubelet-plugins/volume/exec --json`;

const dirHelp = "the driver directory (default: that of kubelets)";

/** Adds the verb. */
export function registerFlexVolumeCommand(program: Command): void {
  const flexvolume = program
    .command("flexvolume")
    .description(
      "install, list and check Flexvolume drivers, the older plugins that are programs on the nodes",
    );
  flexvolume
    .command("install")
    .description("put a driver's program into the driver directory, in one step")
    .argument("<file>", "the program")
    .option("--vendor <vendor>", "vendor of the driver, a DNS name; needed by drivers that attach", "")
    .option("--name <driver>", "name of the driver (default: that of the file)")
    .option("--dir <dir>", dirHelp)
    .addHelpText("after", installHelp)
    .action(install);
  withForms(flexvolume.command("list"), ["table", "json"])
    .description("list the installed drivers, what they can do, and which of them do not work")
    .option("--dir <dir>", dirHelp)
    .addHelpText("after", listHelp)
    .action((flags: ListFlags) => interruptible((signal) => list(flags, signal)));
  withForms(flexvolume.command("check"), ["table", "json"])
    .description("find out whether a driver keeps the Flexvolume protocol")
    .argument("<driver>", "path of its program, or the name of an installed driver (<vendor>/<driver>)")
    .option("--dir <dir>", dirHelp)
    .option("--node <name>", "name of the node for attach", "node-1")
    .option(
      "--options <key=value>",
      "options of the volume; may be repeated",
      (value, before: string[] = []) => [...before, value],
    )
    .option("--expand <old:new>", "also grow the volume, from one size to another; this cannot be taken back")
    .addHelpText("after", checkHelp)
    .action((driver: string, flags: CheckFlags) =>
      interruptible((signal) => check(driver, flags, signal), ["SIGHUP"]),
    );
}

interface ListFlags {
  readonly dir?: string;
  readonly json?: boolean;
}

interface CheckFlags extends ListFlags {
  readonly node: string;
  readonly options?: readonly string[];
  readonly expand?: string;
}

async function install(
  file: string,
  flags: { readonly vendor: string; readonly name?: string; readonly dir?: string },
): Promise<void> {
  const { defaultDriverDirectory, problemOfName } = await import("@longshore/volumes");
  const { installDriver } = await import("./flexvolume/install-driver.ts");
  const path = absolute(file);
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true)
    throw new UsageError(`${file} is not a file`);
  const { vendor, name: driver = basename(path) } = flags;
  const problem = problemOfName(vendor === "" ? driver : `${vendor}/${driver}`);
  if (problem !== undefined) throw new UsageError(`--vendor and --name: ${problem}`);
  const directory = absolute(flags.dir ?? defaultDriverDirectory);
  process.stdout.write(`installed ${installDriver({ file: path, directory, vendor, driver })}\n`);
}

async function seams() {
  const { kernelHost, systemClock, unprivilegedHost } = await import("@longshore/runtime");
  return { clock: systemClock, host: hostForm() === "kernel" ? kernelHost() : unprivilegedHost() };
}

async function list(flags: ListFlags, signal: AbortSignal): Promise<void> {
  const { listFlexVolumeDrivers } = await import("@longshore/volumes");
  const directory = await existingDirectory(flags.dir);
  const drivers = await listFlexVolumeDrivers(await seams(), directory, signal);
  process.stdout.write(flags.json === true ? json(drivers) : driversText(drivers, directory));
  if (drivers.some(({ capabilities }) => capabilities === undefined)) process.exitCode = exitCodes.failed;
}

/** The driver directory that was named, or the default one, without links. @throws UsageError when there is none */
async function existingDirectory(named: string | undefined): Promise<string> {
  const { defaultDriverDirectory } = await import("@longshore/volumes");
  const directory = absolute(named ?? defaultDriverDirectory);
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return realpathSync(directory);
  throw new UsageError(`there is no driver directory ${directory}: choose another --dir`);
}

async function check(driver: string, flags: CheckFlags, signal: AbortSignal): Promise<void> {
  const { checkFlexVolumeDriver } = await import("@longshore/volumes");
  const { lookedUpDriver } = await import("./flexvolume/looked-up-driver.ts");
  const { keyValues } = await import("./driver-check/check-flags.ts");
  const env = await seams();
  const options = keyValues("--options", flags.options);
  const expansion = flags.expand === undefined ? undefined : await expansionOf(flags.expand);
  const found = await lookedUpDriver(env.host, driver, () => existingDirectory(flags.dir));
  const scratchDir = realpathSync(mkdtempSync(join(tmpdir(), "longshore-flexvolume-")));
  const showsLines = flags.json !== true;
  try {
    const checks = await checkFlexVolumeDriver(
      env,
      {
        ...found,
        scratchDir,
        nodeName: flags.node,
        options,
        expansion,
        ...(showsLines && { onCheck: (result) => void process.stdout.write(checkLine(result)) }),
      },
      signal,
    );
    process.stdout.write(showsLines ? checksSummary(checks) : json(checks));
    if (checks.some(({ outcome }) => outcome === "failed")) process.exitCode = exitCodes.failed;
  } finally {
    removeEmpty(scratchDir);
  }
}

/** @throws UsageError unless it is two sizes, the second of which is larger */
async function expansionOf(text: string): Promise<FlexVolumeExpansion> {
  const { parseQuantity, QuantityError } = await import("@longshore/kube");
  const wrong = (why: string) => new UsageError(`--expand ${text}: ${why}: name two sizes, such as 1Gi:2Gi`);
  const [from = "", to = "", ...more] = text.split(":");
  if (from === "" || to === "" || more.length > 0) throw wrong("these are not two sizes");
  const [oldSizeBytes = 0n, newSizeBytes = 0n] = [from, to].map((size) => {
    try {
      return BigInt(parseQuantity(size).toBytes());
    } catch (error) {
      if (error instanceof QuantityError) throw wrong(error.message);
      throw error;
    }
  });
  if (oldSizeBytes <= 0n || newSizeBytes <= oldSizeBytes) throw wrong("a volume only grows");
  return { oldSizeBytes, newSizeBytes };
}

/** What the driver has left in it has been reported, and stays. */
function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    process.stderr.write(`${directory} is not empty: unmount and remove what the driver has left in it\n`);
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
