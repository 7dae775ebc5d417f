/**
 * A cluster that was there before: it was stopped, its supervisor was killed, or the machine was started again. What it
 * is like is in its directory; nothing of that is lost when it is started.
 */

import type { ClusterConfig, OwnDriver } from "../layout/cluster-config.ts";
import type { ClusterLayout } from "../layout/cluster-layout.ts";
import { ClusterDirectoryError } from "../layout/files.ts";
import type { PluginName } from "../layout/plugins.ts";
import { makeSharedMount, mayMount } from "../processes/machine.ts";
import type { CleanupEnv } from "./cleanup.ts";
import { endClusterProcesses } from "./cleanup.ts";
import { ClusterStartError } from "./cluster-start-error.ts";

/** What was asked for in words; undefined: as it is. */
export interface AskedOfCluster {
  readonly nodes?: number;
  readonly port?: number;
  readonly compat?: "kubernetes-1.20";
  readonly shutdownGracePeriod?: number;
  readonly shutdownGracePeriodCriticalPods?: number;
  readonly plugins?: readonly PluginName[];
  readonly withoutInTreePlugins?: true;
  readonly nodeDecidesMigration?: true;
  readonly ownDriver?: OwnDriver;
}

/** Refuses what the cluster is not like. @throws ClusterDirectoryError, ClusterStartError */
export function checkAsked(layout: ClusterLayout, present: ClusterConfig, asked: AskedOfCluster): void {
  const differs = (field: keyof AskedOfCluster, what: string) => {
    throw new ClusterDirectoryError(
      `the cluster in ${layout.dir} has ${what}: leave \`${field}\` out to start it as it is, or use another \`dir\` for a new one`,
    );
  };
  if (asked.nodes !== undefined && asked.nodes !== present.nodes.length) {
    differs("nodes", `${present.nodes.length} nodes`);
  }
  if (asked.compat !== undefined && asked.compat !== present.compat) {
    differs("compat", present.compat === undefined ? "no `compat`" : `\`compat: ${present.compat}\``);
  }
  for (const field of ["shutdownGracePeriod", "shutdownGracePeriodCriticalPods"] as const) {
    if (asked[field] !== undefined && asked[field] !== present[field]) {
      const value = present[field];
      differs(field, value === undefined ? `no \`${field}\`` : `a \`${field}\` of ${value} s`);
    }
  }
  if (
    asked.plugins !== undefined &&
    [...asked.plugins].sort().join() !== [...present.plugins].sort().join()
  ) {
    differs("plugins", `the plugins ${present.plugins.join(", ")}`);
  }
  if (asked.withoutInTreePlugins === true && present.withoutInTreePlugins !== true) {
    differs("withoutInTreePlugins", "in-tree plugins");
  }
  if (asked.nodeDecidesMigration === true && present.nodeDecidesMigration !== true) {
    differs("nodeDecidesMigration", "an attach/detach controller that keeps to its own gates");
  }
  if (
    asked.ownDriver !== undefined &&
    JSON.stringify(asked.ownDriver) !== JSON.stringify(present.ownDriver)
  ) {
    const what =
      present.ownDriver === undefined ? "no driver of its own" : `the driver ${present.ownDriver.name}`;
    differs("ownDriver", what);
  }
  if (present.hostForm === "kernel" && !mayMount()) {
    throw new ClusterStartError(
      `the cluster in ${layout.dir} has loop devices and mounts, which this process may not make: start it as root`,
    );
  }
}

/**
 * Ends what an earlier supervisor has left running (pods go on), and removes what belongs to that run alone: sockets
 * without a server, and names of devices that may be another's by now.
 */
export async function clearEarlierRun(
  env: CleanupEnv,
  layout: ClusterLayout,
  present: ClusterConfig,
  signal: AbortSignal,
): Promise<void> {
  const { host } = env;
  await endClusterProcesses(env, layout, { isSupervisor: true, signal });
  await host.removeFile(layout.cloudSocket);
  await host.removeTree(layout.driverSocketDir);
  await host.removeTree(layout.deviceDir);
  const isMounted = await host.isMountPoint(layout.dir);
  if (present.hostForm === "kernel" && !isMounted) await makeSharedMount(layout.dir);
}
