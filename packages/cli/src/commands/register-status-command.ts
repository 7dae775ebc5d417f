/** `longshore status`: what of a cluster's volumes is where. Reads only. */
import type { Command } from "commander";
import { type ClusterFlags, withCluster } from "../cluster-access.ts";
import { interruptible } from "../exit.ts";
import { withForms } from "../flags.ts";
import { clusterTables, storyText } from "./status-report.ts";

interface StatusFlags extends ClusterFlags {
  readonly volume?: string;
  readonly output: "table" | "json";
}

/** Adds the command `status` to `program`. */
export function registerStatusCommand(program: Command): void {
  withForms(program.command("status"), ["table", "json"])
    .description(
      "what is where in any cluster: migrated plugins and drivers of nodes, paths of volumes, who holds which disk",
    )
    .option("--volume <pv>", "the whole story of one PersistentVolume, with its events")
    .option("--kubeconfig <file>", "the cluster; default $KUBECONFIG, then the account of the pod")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .addHelpText(
      "after",
      "\nIt only lists objects; the rights are those that `longshore assess --print-rbac` prints, with --volume also to list Events;\n" +
        "a crossing is shown where the ConfigMaps of its journals in kube-system may be read.\n" +
        "Exit codes: 0 printed, 1 failed, 2 wrong usage, 130 interrupted.",
    )
    .action(async (flags: StatusFlags) => {
      process.stdout.write(await interruptible((signal) => statusText(flags, signal)));
    });
}

async function statusText(flags: StatusFlags, signal: AbortSignal): Promise<string> {
  const { clusterStatusOf, collectCluster, readCrossings, readVolumeStory } = await import(
    "@longshore/migration"
  );
  const { volume, output } = flags;
  return withCluster(flags, "or run it in a pod", async (env) => {
    const inventory = await collectCluster(env, { signal });
    if (volume === undefined) {
      const read = await readCrossings(env, signal);
      const status = clusterStatusOf(inventory);
      return output === "json" ? jsonText({ ...status, ...read }) : clusterTables(status, read);
    }
    const story = await readVolumeStory(env.kube, inventory, volume, signal);
    return output === "json" ? jsonText(story) : storyText(story);
  });
}

const jsonText = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;
