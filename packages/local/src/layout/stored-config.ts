/** The configuration of a cluster as it is stored, of this version and of those before it. */
import type { ClusterConfig } from "./cluster-config.ts";
import { clusterPlugins, type PluginName } from "./plugins.ts";

/** What version 1 had in place of plugins: the one driver, and perhaps a command of the user's own. */
interface StoredVersion1 extends Omit<ClusterConfig, "version" | "plugins" | "ownDriver"> {
  readonly version: 1;
  readonly driverName: string;
  readonly driverCommand?: readonly string[];
}

/**
 * The configuration in a stored value: of version 1 with the plugin of its driver in place of it. Undefined: it is none.
 * @throws NewerConfigError when a later version of Longshore has written it
 */
export function readStoredConfig(stored: unknown): ClusterConfig | undefined {
  if (!isRecord(stored) || typeof stored.version !== "number") return undefined;
  if (stored.version > 2) throw new NewerConfigError();
  if (!Array.isArray(stored.nodes)) return undefined;
  if (stored.version === 1) return upgraded(stored as unknown as StoredVersion1);
  const known = new Set<unknown>(clusterPlugins.map(({ name }) => name));
  const { plugins } = stored;
  const isWhole = Array.isArray(plugins) && plugins.length > 0 && plugins.every((name) => known.has(name));
  return isWhole ? (stored as unknown as ClusterConfig) : undefined;
}

/** A later version of Longshore has written the configuration. */
export class NewerConfigError extends Error {
  override readonly name = "NewerConfigError";
}

function upgraded({
  version: _,
  driverName,
  driverCommand,
  ...rest
}: StoredVersion1): ClusterConfig | undefined {
  if (typeof driverName !== "string") return undefined;
  // Every cluster of version 1 has the in-tree code of EBS, whatever its driver is called.
  const named = clusterPlugins.filter((plugin) => plugin.driverName === driverName).map(({ name }) => name);
  const plugins: readonly PluginName[] = [...new Set<PluginName>(["aws-ebs", ...named])];
  const own = driverCommand === undefined ? {} : { ownDriver: { name: driverName, command: driverCommand } };
  return { ...rest, version: 2, plugins, ...own };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
