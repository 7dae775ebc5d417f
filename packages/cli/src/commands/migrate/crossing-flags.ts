/** The flags of `migrate` and `rollback`, and what their values mean. */
import { defaultStepTimeoutMs } from "@longshore/migration";
import { type Command, Option } from "commander";
import { exitCodes, UsageError } from "../../exit.ts";
import { duration, repeated, wholeNumber, withForms } from "../../flags.ts";
import { type PlatformName, platformNames } from "../platform-names.ts";
import { pluginsOption } from "../plugin-flag.ts";

/** Flags of both verbs. */
export interface CrossingFlags {
  readonly plugin?: readonly string[];
  readonly dir?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly platform?: PlatformName;
  readonly nodeCommand?: string;
  readonly gardenKubeconfig?: string;
  readonly shoot?: string;
  readonly journal?: string;
  readonly maxUnavailable?: string;
  readonly onlyNode?: readonly string[];
  readonly pauseAfter?: string;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly printRbac?: boolean;
  readonly json?: boolean;
  readonly stepTimeout: string;
  readonly uncordonOnAbort?: boolean;
}

const help = `
A run that was interrupted is resumed by running it again, also on another machine: its journal is in the cluster, too.
Where it waits, it says for what, at once and every 30 s. Ctrl-C ends it and says what it leaves; a second Ctrl-C ends it at once.
Several plugins cross one after the other, each with a journal of its own; one that was interrupted comes first.

Exit codes: ${exitCodes.done} done, ${exitCodes.failed} failed, ${exitCodes.usage} wrong usage, ${exitCodes.timedOut} a step took longer than --step-timeout, ${exitCodes.partly} paused with nodes left, ${exitCodes.interrupted} interrupted.`;

/** Adds one of the verbs with its flags. */
export function crossingCommand(program: Command, name: string, description: string): Command {
  return withForms(program.command(name), ["text", "json"])
    .description(description)
    .argument("[plan]", "a file of `longshore plan`, to be followed")
    .addOption(
      pluginsOption("without a plan: the in-tree plugin, e.g. aws-ebs; all: those of the local cluster"),
    )
    .option("--dir <dir>", "directory of the local cluster")
    .option(
      "--kubeconfig <file>",
      "another cluster than the local one (default, with --platform: $KUBECONFIG)",
    )
    .option("--context <name>", "of the kubeconfig; default its current one")
    .addOption(
      new Option(
        "--platform <name>",
        "how feature gates are set: in the local cluster (embedded), by you (manual), in the files of nodes (kubeadm), or through an API; default embedded, with --kubeconfig manual",
      ).choices(platformNames),
    )
    .option(
      "--node-command <words>",
      'kubeadm: runs a program on a node, e.g. "ssh root@{node}"; words are separated by spaces, no shell reads them here',
    )
    .option("--garden-kubeconfig <file>", "gardener: the garden cluster, where the Shoot is")
    .option("--shoot <namespace/name>", "gardener: the Shoot")
    .option(
      "--journal <file>",
      "where the run keeps its journal (default: in the cluster directory, or below the state directory)",
    )
    .option(
      "--max-unavailable <count>",
      "nodes that cross at the same time at most (default: as planned, or 1)",
    )
    .option("--only-node <node>", "cross this node only; may be repeated", repeated)
    .option("--pause-after <count>", "pause after so many batches of nodes; running it again goes on")
    .option("--force", "also evict pods that no controller brings back")
    .option("--dry-run", "run the preflight only, change nothing")
    .option("--print-rbac", "print the rights that the command needs in a cluster, and end")
    .option(
      "--step-timeout <duration>",
      "give a step up that takes longer, e.g. 90s or 1h",
      `${defaultStepTimeoutMs / 60_000}m`,
    )
    .option("--uncordon-on-abort", "when the run ends early, uncordon the nodes on which pods are safe")
    .addHelpText("after", help);
}

/** The platform that the flags name. @throws UsageError where they do not go together */
export function platformOf(flags: CrossingFlags): PlatformName {
  const isElsewhere = flags.kubeconfig !== undefined || flags.context !== undefined;
  const platform = flags.platform ?? (isElsewhere ? "manual" : "embedded");
  if (platform === "embedded" && isElsewhere) {
    throw new UsageError(
      "--platform: embedded is the local cluster, which --dir names; leave --kubeconfig out",
    );
  }
  if (platform !== "embedded" && flags.dir !== undefined) {
    throw new UsageError("--dir: that is a local cluster; name another one with --kubeconfig");
  }
  if ((platform === "kubeadm") !== (flags.nodeCommand !== undefined)) {
    throw new UsageError(
      '--node-command: it goes with --platform kubeadm, which needs it, e.g. "ssh root@{node}"',
    );
  }
  const isGardener = platform === "gardener";
  if (isGardener !== (flags.gardenKubeconfig !== undefined) || isGardener !== (flags.shoot !== undefined)) {
    throw new UsageError("--shoot, --garden-kubeconfig: they go with --platform gardener, which needs both");
  }
  return platform;
}

/** Options of a run that are flags alone. */
export function runOptions(flags: CrossingFlags) {
  const { maxUnavailable, pauseAfter, onlyNode } = flags;
  return {
    stepTimeoutMs: duration("--step-timeout", flags.stepTimeout),
    clusterJournal: true,
    ...(maxUnavailable === undefined
      ? {}
      : { maxUnavailable: wholeNumber("--max-unavailable", maxUnavailable, 1, 1000) }),
    ...(pauseAfter === undefined ? {} : { pauseAfter: wholeNumber("--pause-after", pauseAfter, 1, 100_000) }),
    ...(onlyNode === undefined ? {} : { onlyNodes: onlyNode }),
    ...(flags.force === true ? { force: true } : {}),
  };
}
