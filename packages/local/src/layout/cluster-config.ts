/** What a local cluster is like, as it is written into its directory. */
import { globalMigrationGate } from "@longshore/translation";
import { clusterPlugin, clusterPlugins, type PluginName } from "./plugins.ts";

/** A node of the local cluster. */
export interface LocalNode {
  readonly name: string;
  readonly zone: string;
  /** The machine's id at the disk cloud. */
  readonly instanceId: string;
}

/** The configuration of a local cluster. */
export interface ClusterConfig {
  readonly version: 2;
  readonly region: string;
  readonly nodes: readonly LocalNode[];
  /** The in-tree plugins of the cluster, at least one; the driver of each runs beside it. */
  readonly plugins: readonly PluginName[];
  /** Controllers and nodes have no in-tree code: every volume of {@link plugins} is served by its driver, from the first one on. */
  readonly withoutInTreePlugins?: true;
  /**
   * The attach/detach controller takes the migration of {@link plugins} as on, so that each node's statement decides, as
   * in OpenShift (docs/behaviour/migration-controllers.md B2).
   */
  readonly nodeDecidesMigration?: true;
  /** Attach limit of each node, for the disks of EBS. */
  readonly attachLimit: number;
  /** Loop devices and mounts, or directories and links. */
  readonly hostForm: "kernel" | "unprivileged";
  /** Port of the API server on the loopback interface; 0 chooses one. */
  readonly port: number;
  /** The user's own driver. Left out: all drivers are the reference driver. */
  readonly ownDriver?: OwnDriver;
  /** Every call that the drivers answer is written down, see `driver-calls.ts`. */
  readonly recordsDriverCalls?: true;
  /** The controllers do what Kubernetes 1.20 is recorded to do where ours deliberately differ. */
  readonly compat?: "kubernetes-1.20";
  /** A node that is stopped shuts down gracefully, within this time in seconds; left out: its pods run on. */
  readonly shutdownGracePeriod?: number;
  /** The part of it, in seconds, that is kept for critical pods; default 0. */
  readonly shutdownGracePeriodCriticalPods?: number;
}

/** A driver of the user. */
export interface OwnDriver {
  /** The name by which it calls itself; that of a plugin's driver: it takes the reference driver's place. */
  readonly name: string;
  /** Program and arguments, see `driver-command.ts`. */
  readonly command: readonly string[];
  /** Where it is started, for relative paths in {@link command}; default the directory of who starts the cluster. */
  readonly workingDir?: string;
  /**
   * Each node makes its own volumes: one process a node serves all of the driver, there is no other controller, and nothing is
   * attached (docs/behaviour/sidecars.md 2.10).
   */
  readonly nodeDeployment?: true;
}

/** The plugins of a cluster unless others are chosen. */
export const defaultPlugins: readonly PluginName[] = ["aws-ebs"];

/**
 * Where the nodes are: in GCE's zones where its disks are without those of EBS. A node has one zone label, so each provider takes
 * the zones of the nodes as its own; the drivers then name the region, which is not to be read off such a name (docs/decisions/0012-reference-driver.md).
 */
function placesOf(plugins: readonly PluginName[]): {
  readonly region: string;
  readonly zones: readonly string[];
} {
  return plugins.includes("gce-pd") && !plugins.includes("aws-ebs")
    ? { region: "us-east1", zones: ["us-east1-b", "us-east1-c", "us-east1-d"] }
    : { region: "us-east-1", zones: ["us-east-1a", "us-east-1b", "us-east-1c"] };
}

/** Gates before a crossing: the migration of every plugin is off. A cluster without in-tree plugins begins after it ({@link firstGates}). */
export const initialGates: Readonly<Record<string, boolean>> = {
  [globalMigrationGate]: true,
  ...Object.fromEntries(clusterPlugins.map(({ gate }) => [gate, false])),
};

/** Gates with which a cluster begins. */
export function firstGates({
  plugins,
  withoutInTreePlugins,
}: Pick<ClusterConfig, "plugins" | "withoutInTreePlugins">): Readonly<Record<string, boolean>> {
  if (withoutInTreePlugins !== true) return initialGates;
  return { ...initialGates, ...Object.fromEntries(plugins.map((name) => [clusterPlugin(name).gate, true])) };
}

/** Gates under which nothing would serve the volumes of a plugin. */
export class UnservedPluginError extends Error {
  override readonly name = "UnservedPluginError";
}

/** Refuses gates that leave a plugin to in-tree code which the cluster does not have. @throws UnservedPluginError */
export function requireServed(
  config: Pick<ClusterConfig, "plugins" | "withoutInTreePlugins">,
  gates: Readonly<Record<string, boolean>>,
): void {
  if (config.withoutInTreePlugins !== true) return;
  const unserved = config.plugins.map(clusterPlugin).find(({ gate }) => {
    return gates[globalMigrationGate] === false || gates[gate] !== true;
  });
  if (unserved === undefined) return;
  throw new UnservedPluginError(
    `the cluster has no in-tree plugin ${unserved.inTreeName}: ${globalMigrationGate} and ${unserved.gate} stay on, since ` +
      `nothing but the driver ${unserved.driverName} can serve its volumes`,
  );
}

/** The drivers of a cluster: those of its plugins, and the user's own. */
export function driverNames({
  plugins,
  ownDriver,
}: Pick<ClusterConfig, "plugins" | "ownDriver">): readonly string[] {
  const names = plugins.map((name) => clusterPlugin(name).driverName);
  return [...new Set([...names, ...(ownDriver === undefined ? [] : [ownDriver.name])])];
}

/** The drivers that one controller serves for the cluster: all but one whose volumes each node makes for itself. */
export function controllerDriverNames(
  config: Pick<ClusterConfig, "plugins" | "ownDriver">,
): readonly string[] {
  const { ownDriver } = config;
  return driverNames(config).filter((name) => ownDriver?.nodeDeployment !== true || name !== ownDriver.name);
}

/** The configuration of a cluster with so many nodes, spread over three zones. */
export function clusterConfig(
  nodeCount: number,
  hostForm: ClusterConfig["hostForm"],
  options: Partial<
    Pick<
      ClusterConfig,
      | "port"
      | "attachLimit"
      | "compat"
      | "shutdownGracePeriod"
      | "shutdownGracePeriodCriticalPods"
      | "plugins"
      | "withoutInTreePlugins"
      | "nodeDecidesMigration"
      | "ownDriver"
      | "recordsDriverCalls"
    >
  > = {},
): ClusterConfig {
  const plugins = options.plugins ?? defaultPlugins;
  const { region, zones } = placesOf(plugins);
  return {
    version: 2,
    region,
    nodes: Array.from({ length: nodeCount }, (_, index) => ({
      name: `node-${index + 1}`,
      zone: zones[index % zones.length] as string,
      instanceId: `i-${(index + 1).toString(16).padStart(17, "0")}`,
    })),
    plugins,
    ...(options.withoutInTreePlugins === true ? { withoutInTreePlugins: true } : {}),
    ...(options.nodeDecidesMigration === true ? { nodeDecidesMigration: true } : {}),
    attachLimit: options.attachLimit ?? 39,
    hostForm,
    port: options.port ?? 0,
    ...(options.ownDriver === undefined ? {} : { ownDriver: options.ownDriver }),
    ...(options.recordsDriverCalls === true ? { recordsDriverCalls: true } : {}),
    ...(options.compat === undefined ? {} : { compat: options.compat }),
    ...(options.shutdownGracePeriod === undefined
      ? {}
      : { shutdownGracePeriod: options.shutdownGracePeriod }),
    ...(options.shutdownGracePeriodCriticalPods === undefined
      ? {}
      : { shutdownGracePeriodCriticalPods: options.shutdownGracePeriodCriticalPods }),
  };
}

/** The in-tree plugins whose migration counts as on in the attach/detach controller; empty: its own gates count. */
export function forcedMigrationOf({ plugins, nodeDecidesMigration }: ClusterConfig): {
  readonly forceMigrationOf?: readonly string[];
} {
  if (nodeDecidesMigration !== true) return {};
  return { forceMigrationOf: plugins.map((name) => clusterPlugin(name).inTreeName) };
}

/** How long a node may take to shut down, in milliseconds; undefined: its pods run on when its agent stops. */
export function shutdownPeriodsOf({
  shutdownGracePeriod: total = 0,
  shutdownGracePeriodCriticalPods: critical = 0,
}: ClusterConfig): { readonly totalMs: number; readonly criticalPodsMs: number } | undefined {
  if (total <= 0) return undefined;
  return { totalMs: 1000 * total, criticalPodsMs: 1000 * Math.min(critical, total) };
}
