/** The cluster that a crossing is run in: the local one, or one that a kubeconfig names. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import {
  clusterPlugins,
  lockCrossing,
  openCluster,
  type PluginName,
  pluginsNamed,
  thisRunner,
} from "@longshore/local";
import {
  type CrossingEnv,
  type CrossingSubject,
  createKubeadmPlatform,
  createManualPlatform,
  crossingSubject,
  type ManualTask,
  nodeCommandOf,
  type Platform,
  readClusterId,
} from "@longshore/migration";
import { gateTable } from "@longshore/volumes";
import { configOf, namingAccount } from "../../cluster-access.ts";
import { absolute, clusterDir, commandEnv } from "../../environment.ts";
import { UsageError } from "../../exit.ts";
import { kubeconfigOf } from "../../kubeconfig.ts";
import type { PlatformName } from "../platform-names.ts";
import { type CrossingFlags, platformOf } from "./crossing-flags.ts";

/** An open cluster; `close` it. */
export interface CrossingTarget {
  readonly env: CrossingEnv;
  /** In-tree plugins that a crossing of it may name by `all`; empty where that is not known. */
  readonly plugins: readonly string[];
  journalFile(subject: CrossingSubject): string;
  /** Those of its other plugins. */
  otherJournalFiles(subject: CrossingSubject): readonly string[];
  /** Keeps other runs out that use the same journals; returns what names this machine and these journals among all. */
  lock(): Promise<{ readonly identity: string; readonly release: () => void }>;
  close(): Promise<void>;
}

/** Opens it. @param onTask receives what an administrator is to do @throws UsageError for flags that do not go together */
export async function openTarget(
  flags: CrossingFlags,
  onTask: (task: ManualTask) => void,
  signal: AbortSignal,
): Promise<CrossingTarget> {
  const platform = platformOf(flags);
  return platform === "embedded" ? localTarget(flags) : remoteTarget(platform, flags, onTask, signal);
}

async function localTarget(flags: CrossingFlags): Promise<CrossingTarget> {
  const env = commandEnv();
  const { kube, platform, layout, config } = await openCluster(env, clusterDir(flags.dir));
  const fileOf = ({ shortName }: CrossingSubject) => layout.journalFile(shortName as PluginName);
  return {
    env: { ...env, kube, platform },
    plugins: pluginsNamed(flags.plugin ?? [], config.plugins),
    journalFile: (subject) => (flags.journal === undefined ? fileOf(subject) : absolute(flags.journal)),
    otherJournalFiles: ({ shortName }) =>
      config.plugins.filter((name) => name !== shortName).map(layout.journalFile),
    lock: () => lockJournals(env, layout.dir),
    close: async () => kube.close(),
  };
}

async function remoteTarget(
  name: Exclude<PlatformName, "embedded">,
  flags: CrossingFlags,
  onTask: (task: ManualTask) => void,
  signal: AbortSignal,
): Promise<CrossingTarget> {
  const env = commandEnv("unprivileged");
  const { createHttpClient } = await import("@longshore/kube");
  const kube = createHttpClient(env, await configOf(flags, "or run it in a pod"));
  try {
    const clusterId = await readClusterId(kube, signal);
    const state = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
    const dir =
      flags.journal === undefined
        ? join(state, "longshore", "crossings", clusterId)
        : resolve(flags.journal, "..");
    const fileOf = (shortName: string) => join(dir, `crossing-${shortName}.json`);
    const clients: { close(): Promise<void> }[] = [kube];
    const platform = await platformFor(name, flags, { ...env, kube }, { onTask, clients });
    return {
      env: { ...env, kube, platform },
      plugins: (flags.plugin ?? []).map((plugin) => crossingSubject(plugin).shortName),
      journalFile: ({ shortName }) =>
        flags.journal === undefined ? fileOf(shortName) : absolute(flags.journal),
      otherJournalFiles: ({ shortName }) =>
        flags.journal === undefined
          ? clusterPlugins.filter((plugin) => plugin.name !== shortName).map((plugin) => fileOf(plugin.name))
          : [],
      async lock() {
        await env.host.makeDirectory(dir);
        return lockJournals(env, dir);
      },
      close: async () => {
        for (const client of clients) await client.close();
      },
    };
  } catch (error) {
    await kube.close();
    throw await namingAccount(flags, error);
  }
}

interface PlatformParts {
  readonly onTask: (task: ManualTask) => void;
  /** Receives further clients, to be closed. */
  readonly clients: { close(): Promise<void> }[];
}

async function platformFor(
  name: Exclude<PlatformName, "embedded">,
  flags: CrossingFlags,
  env: Omit<CrossingEnv, "platform">,
  { onTask, clients }: PlatformParts,
): Promise<Platform> {
  switch (name) {
    case "manual":
      return createManualPlatform({ ...env, onTask });
    case "kubeadm": {
      const words = (flags.nodeCommand ?? "").split(" ").filter((word) => word !== "");
      // What ssh needs of this environment: its agent and its configuration.
      const variables = ["PATH", "HOME", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "USER"];
      const known = variables.flatMap((variable) => {
        const value = process.env[variable];
        return value === undefined ? [] : [[variable, value] as const];
      });
      const nodeCommand = nodeCommandOf(env.host, words, Object.fromEntries(known));
      return createKubeadmPlatform({ ...env, nodeCommand, refusal: gateRefusal });
    }
    case "openshift": {
      const { createOpenShiftPlatform } = await import("@longshore/migration/openshift");
      return createOpenShiftPlatform(env);
    }
    case "gardener":
      return gardenerPlatform(flags, env, clients);
  }
}

/** Why Kubernetes of this version refuses to start with the gate. */
export function gateRefusal(version: string, gate: string, value: boolean): string | undefined {
  const minor = /^v?(1\.\d+)\./.exec(version)?.[1];
  const row = minor === undefined ? undefined : gateTable(minor).find((each) => each.gate === gate);
  if (row === undefined) return undefined;
  if (row.stage === "notYet") return `${version} does not have the feature gate ${gate} yet`;
  if (row.stage === "removed") return `${version} does not have the feature gate ${gate} any more`;
  return row.locked && row.default !== value ? `${version} has ${gate} locked to ${row.default}` : undefined;
}

async function gardenerPlatform(
  { gardenKubeconfig = "", shoot = "" }: CrossingFlags,
  env: Omit<CrossingEnv, "platform">,
  clients: { close(): Promise<void> }[],
): Promise<Platform> {
  const [namespace = "", name = "", ...more] = shoot.split("/");
  if (namespace === "" || name === "" || more.length > 0) {
    throw new UsageError(`--shoot: "${shoot}" is not namespace/name of a Shoot, e.g. garden-dev/one`);
  }
  const { createHttpClient } = await import("@longshore/kube");
  const { createGardenerPlatform } = await import("@longshore/migration/gardener");
  const source = { path: resolve(gardenKubeconfig), environment: process.env as Record<string, string> };
  const garden = createHttpClient(env, await kubeconfigOf("--garden-kubeconfig", source));
  clients.push(garden);
  return createGardenerPlatform({ ...env, garden, shoot: { namespace, name } });
}

/**
 * Only one process of this machine uses the journals in the directory, so that one name stands for it: a run that was killed is
 * followed by the next one without waiting for its Lease to lapse.
 */
export async function lockJournals(env: Omit<CrossingEnv, "kube" | "platform">, dir: string) {
  const release = lockCrossing({ dir });
  try {
    const file = join(dir, "crossing-runner");
    let id = (await env.host.readFile(file))?.trim() ?? "";
    if (id === "") {
      id = env.random.uuid("identity of crossings");
      await env.host.writeFileAtomic(file, `${id}\n`);
    }
    const { user, host } = thisRunner();
    return { identity: `${user}@${host}_${id}`, release };
  } catch (error) {
    release();
    throw error;
  }
}
