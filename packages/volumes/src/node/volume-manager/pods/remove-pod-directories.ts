/** What is left on disk of a pod that is gone. Source: docs/behaviour/node-agent.md 7.5, "Pod directories". */
import { errorChain, type Host, HostError, type Logger } from "@longshore/runtime";
import { kubeletPaths } from "../../../framework/volume-host.ts";

/**
 * Removes the pod's directories that are empty: those of plugins, and then their parents. One that holds anything stays,
 * with its parents: nothing is ever removed below it. A failure is logged; the next agent tries again.
 */
export async function removePodDirectories(
  { host, rootDir, logger }: { readonly host: Host; readonly rootDir: string; readonly logger: Logger },
  podUID: string,
): Promise<void> {
  const ofPlugins = [
    kubeletPaths.podDevicesDir(rootDir, podUID),
    kubeletPaths.podVolumesDir(rootDir, podUID),
  ];
  try {
    for (const directory of ofPlugins) {
      for (const name of (await host.readDirectory(directory)) ?? [])
        await host.removeDirectory(`${directory}/${name}`);
      await host.removeDirectory(directory);
    }
    await host.removeDirectory(kubeletPaths.podDir(rootDir, podUID));
  } catch (error) {
    if (error instanceof HostError && error.code === "ENOTEMPTY") return;
    logger.warn("directories of a pod that is gone cannot be removed", {
      pod: podUID,
      error: errorChain(error),
    });
  }
}
