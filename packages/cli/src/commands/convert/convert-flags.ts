/** The flags of the verbs of `longshore convert`, and what their values mean. */
import {
  type ClaimSizes,
  type ConversionPlanOptions,
  type ConversionRunOptions,
  crossingSubject,
  defaultStepTimeoutMs,
  parseHandleRules,
} from "@longshore/migration";
import { type Command, Option } from "commander";
import { absolute } from "../../environment.ts";
import { exitCodes, UsageError } from "../../exit.ts";
import { duration, repeated, wholeNumber, withForms } from "../../flags.ts";
import { claimSizes } from "../claim-size-flag.ts";
import { pluginsOption } from "../plugin-flag.ts";

/** Which cluster. */
export interface TargetFlags {
  readonly dir?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly journalDir?: string;
  readonly json?: boolean;
}

/** Flags of all verbs; each has some of them. */
export interface ConvertFlags extends TargetFlags {
  readonly pv?: readonly string[];
  readonly namespace?: readonly string[];
  readonly plugin?: readonly string[];
  readonly selector?: string;
  readonly workload?: readonly string[];
  readonly claimSize?: ClaimSizes;
  readonly all?: true;
  readonly classes?: true;
  readonly templates?: true;
  readonly classSuffix?: string;
  readonly rules?: string;
  readonly fromDriver?: string;
  readonly toDriver?: string;
  readonly scaleDown?: true;
  readonly wait?: true;
  readonly ownersPaused?: true;
  readonly skipRefused?: true;
  readonly backupDir?: string;
  readonly parallel?: string;
  readonly batch?: string;
  readonly pauseAfter?: string;
  readonly stepTimeout?: string;
  readonly printRbac?: true;
}

/** Adds the flags that name the cluster, and the forms of output. */
export function withTarget(command: Command): Command {
  return withForms(command, ["text", "json"])
    .option("--dir <dir>", "directory of the local cluster")
    .option("--kubeconfig <file>", "another cluster than the local one")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .option(
      "--journal-dir <dir>",
      "where the journals lie (default: in the cluster directory, or below the state directory)",
    );
}

/** Adds the flags that choose volumes, and say how those in use are dealt with. */
export function withVolumes(command: Command): Command {
  return command
    .option("--pv <name>", "this PersistentVolume; may be repeated", repeated)
    .option("--namespace <name>", "volumes of claims in this namespace; may be repeated", repeated)
    .addOption(pluginsOption("volumes of this in-tree plugin"))
    .option("--selector <labels>", "volumes whose claim has these labels, e.g. app=web")
    .option("--classes", "in-tree StorageClasses, too; alone: these, and no volumes")
    .option(
      "--templates",
      "claim templates of StatefulSets, too: each set is made again around its running pods; alone: these, and no volumes",
    )
    .option(
      "--class-suffix <text>",
      "make new classes beside the old ones, with this at the end of the name, e.g. -csi (default: in their place)",
    )
    .option(
      "--workload <kind/namespace/name>",
      "the disks that the template of this workload names itself, e.g. deployment/shop/web; alone: these, and no volumes; may be repeated",
      repeated,
    )
    .option(
      "--scale-down",
      "scale StatefulSets, Deployments and ReplicaSets that use the volumes to 0, and back",
    )
    .option("--wait", "wait until volumes in use are not any more")
    .option("--owners-paused", "the controllers that own claims are paused: they create none again");
}

/** Adds the flag of claims that are new. */
export function withSizes(command: Command): Command {
  return command.option(
    "--claim-size <[volume=]size>",
    "size of the disks that templates name themselves, or of that of one volume, such as 10Gi or data=20Gi; may be repeated",
    claimSizes,
  );
}

/** Adds the flags of volumes between two drivers. */
export function withRules(command: Command): Command {
  return command
    .option("--rules <file>", "volumes of one CSI driver to another: how their handles are mapped (YAML)")
    .option("--from-driver <name>", "with rules: the driver of the volumes, as the rules name it")
    .option("--to-driver <name>", "with rules: the driver that they get, as the rules name it");
}

/** Adds the flags of a run. */
export function withRun(command: Command): Command {
  return command
    .option("--all", "every volume that can be carried")
    .option("--skip-refused", "leave out what is refused, and carry the rest")
    .option("--backup-dir <dir>", "save the objects that are to be removed here first, as files")
    .option("--parallel <count>", "volumes at the same time at most", "1")
    .option("--batch <count>", "volumes of a batch; after a failure no other batch begins (default: all)")
    .option("--pause-after <count>", "pause after so many batches; running it again goes on")
    .addOption(
      new Option("--step-timeout <duration>", "give a step up that takes longer, e.g. 90s or 1h").default(
        `${defaultStepTimeoutMs / 60_000}m`,
      ),
    )
    .option("--print-rbac", "print the rights that the command needs in a cluster, and end");
}

/** Help of `run` and `undo`. */
export const runHelp = `
A run that was interrupted is resumed by running it again, also on another machine: its journals are in the cluster, too.
The disk is kept by policy Retain from the first step to the last. Ctrl-C ends the run between two requests.

Exit codes: ${exitCodes.done} done, ${exitCodes.failed} failed or refused, ${exitCodes.usage} wrong usage, ${exitCodes.timedOut} a step took longer than --step-timeout, ${exitCodes.partly} paused with volumes left, ${exitCodes.interrupted} interrupted.`;

/** What the flags ask of a plan. @throws UsageError, HandleRuleError */
export async function planOptions(flags: ConvertFlags): Promise<ConversionPlanOptions> {
  const { pv, namespace, plugin, selector, rules, fromDriver, toDriver } = flags;
  const { classes = false, templates = false, classSuffix } = flags;
  if (classSuffix !== undefined && !/^[a-z0-9.-]*[a-z0-9]$/.test(classSuffix)) {
    throw new UsageError("--class-suffix: small letters, digits, - and ., with a letter or digit at the end");
  }
  if (classSuffix !== undefined && !classes && !templates) {
    throw new UsageError("--class-suffix: it is for --classes and --templates");
  }
  const rule = rules === undefined ? undefined : parseHandleRules(await ruleFile(rules));
  if (rule === undefined && (fromDriver !== undefined || toDriver !== undefined)) {
    throw new UsageError("--rules: volumes of a driver need a file that says how their handles are mapped");
  }
  if (fromDriver !== undefined && fromDriver !== rule?.fromDriver) {
    throw new UsageError(`--from-driver: the rules are for volumes of ${rule?.fromDriver}`);
  }
  if (toDriver !== undefined && toDriver !== rule?.toDriver) {
    throw new UsageError(`--to-driver: the rules lead to ${rule?.toDriver}`);
  }
  const plugins =
    plugin?.includes("all") === true ? undefined : plugin?.map((name) => crossingSubject(name).inTreeName);
  return {
    ...(pv === undefined ? {} : { volumes: pv }),
    ...(namespace === undefined ? {} : { namespaces: namespace }),
    ...(plugins === undefined ? {} : { plugins }),
    ...(selector === undefined ? {} : { selector }),
    ...(rule === undefined ? {} : { rule }),
    ...(classSuffix === undefined ? {} : { classSuffix }),
    noVolumes: (classes || templates || flags.workload !== undefined) && !areVolumesChosen(flags),
    classes,
    templates,
    scaleDown: flags.scaleDown === true,
    wait: flags.wait === true,
    ownersPaused: flags.ownersPaused === true,
  };
}

async function ruleFile(file: string): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(absolute(file), "utf8");
  } catch (error) {
    throw new UsageError(`--rules ${file}: it cannot be read`, { cause: error });
  }
}

/** What the flags ask of a run. @throws UsageError */
export function runOptions(flags: ConvertFlags): Omit<ConversionRunOptions, "journalDir" | "onEvent"> {
  const { backupDir, parallel = "1", batch, pauseAfter, stepTimeout } = flags;
  return {
    parallel: wholeNumber("--parallel", parallel, 1, 100),
    ...(backupDir === undefined ? {} : { backupDir: absolute(backupDir) }),
    ...(batch === undefined ? {} : { batch: wholeNumber("--batch", batch, 1, 100_000) }),
    ...(pauseAfter === undefined ? {} : { pauseAfter: wholeNumber("--pause-after", pauseAfter, 1, 100_000) }),
    ...(stepTimeout === undefined ? {} : { stepTimeoutMs: duration("--step-timeout", stepTimeout) }),
  };
}

function areVolumesChosen({ pv, namespace, plugin, selector, all, rules }: ConvertFlags): boolean {
  return [pv, namespace, plugin, selector, all, rules].some((each) => each !== undefined);
}

/** False where the flags choose volumes, classes or claim templates alone. A template of pods has no PersistentVolume to name. */
export function areInlineChosen(flags: ConvertFlags): boolean {
  const { workload, pv, selector, rules, classes, templates } = flags;
  if (workload !== undefined) return true;
  const isOther = (classes === true || templates === true) && !areVolumesChosen(flags);
  return !isOther && [pv, selector, rules].every((each) => each === undefined);
}

/** @throws UsageError where nothing is chosen: a run of all is asked for by name */
export function requireChoice(flags: ConvertFlags): void {
  const { workload, classes, templates } = flags;
  if (areVolumesChosen(flags) || workload !== undefined || classes === true || templates === true) return;
  throw new UsageError(
    "--all: which volumes? Choose by --pv, --workload, --namespace, --plugin or --selector, or say --all; --classes and --templates are for what makes new ones",
  );
}
