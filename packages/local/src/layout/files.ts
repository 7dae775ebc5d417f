/** Reading and writing the cluster directory's own files. */
import type { GateValues } from "@longshore/migration";
import { type Host, shellWord } from "@longshore/runtime";
import { type ClusterConfig, initialGates } from "./cluster-config.ts";
import type { ClusterLayout } from "./cluster-layout.ts";
import { NewerConfigError, readStoredConfig } from "./stored-config.ts";

/** The directory holds no cluster, or not one that this version can use. */
export class ClusterDirectoryError extends Error {
  override readonly name = "ClusterDirectoryError";
}

/** The cluster's configuration. @throws ClusterDirectoryError */
export async function readClusterConfig(host: Host, layout: ClusterLayout): Promise<ClusterConfig> {
  const stored = await readJson(host, layout.configFile);
  if (stored === undefined) {
    throw new ClusterDirectoryError(
      `no cluster in ${layout.dir}: start one with "longshore cluster up --dir ${shellWord(layout.dir)}"`,
    );
  }
  const config = storedConfig(stored, layout);
  if (config === undefined) {
    throw new ClusterDirectoryError(
      `${layout.configFile} is damaged, or not of a cluster: choose another \`dir\``,
    );
  }
  return config;
}

function storedConfig(stored: unknown, layout: ClusterLayout): ClusterConfig | undefined {
  try {
    return readStoredConfig(stored);
  } catch (error) {
    if (!(error instanceof NewerConfigError)) throw error;
    throw new ClusterDirectoryError(
      `${layout.configFile} was written by a newer version of Longshore: use that one, or another \`dir\``,
      { cause: error },
    );
  }
}

/** Writes the configuration of a new cluster. */
export async function writeClusterConfig(
  host: Host,
  layout: ClusterLayout,
  config: ClusterConfig,
): Promise<void> {
  await host.writeFileAtomic(layout.configFile, `${JSON.stringify(config, undefined, 2)}\n`);
}

/** Gates of the control plane or of a node, by name. */
export async function readGates(host: Host, layout: ClusterLayout, name: string): Promise<GateValues> {
  return ((await readJson(host, layout.gatesFile(name))) as GateValues | undefined) ?? initialGates;
}

/** Durable when it resolves. */
export async function writeGates(
  host: Host,
  layout: ClusterLayout,
  name: string,
  values: GateValues,
): Promise<void> {
  await host.makeDirectory(`${layout.dir}/gates`);
  await host.writeFileAtomic(layout.gatesFile(name), `${JSON.stringify(values)}\n`);
}

/** The JSON file's value, or undefined when there is none. @throws ClusterDirectoryError when it is no JSON */
export async function readJson(host: Host, path: string): Promise<unknown> {
  const text = await host.readFile(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ClusterDirectoryError(
      `${path} is damaged (not JSON): remove it, or the whole cluster directory`,
      {
        cause: error,
      },
    );
  }
}
