/** The cluster that a conversion is run in: the local one, or one that a kubeconfig names. */
import { homedir } from "node:os";
import { join } from "node:path";
import { openCluster } from "@longshore/local";
import { type ConversionEnv, readClusterId } from "@longshore/migration";
import { configOf } from "../../cluster-access.ts";
import { absolute, clusterDir, commandEnv } from "../../environment.ts";
import { UsageError } from "../../exit.ts";
import { lockJournals } from "../migrate/crossing-target.ts";
import type { TargetFlags } from "./convert-flags.ts";

/** An open cluster; `close` it. */
export interface ConversionTarget {
  readonly env: ConversionEnv;
  readonly clusterId: string;
  readonly journalDir: string;
  /** Keeps other runs of this machine out; returns what names it among all. */
  lock(): Promise<{ readonly identity: string; readonly release: () => void }>;
  close(): Promise<void>;
}

/** Opens it. @throws UsageError for flags that do not go together */
export async function openConversionTarget(
  flags: TargetFlags,
  signal: AbortSignal,
): Promise<ConversionTarget> {
  const isElsewhere = flags.kubeconfig !== undefined || flags.context !== undefined;
  if (isElsewhere && flags.dir !== undefined) {
    throw new UsageError("--dir: that is a local cluster; name another one with --kubeconfig");
  }
  return isElsewhere ? remoteTarget(flags, signal) : localTarget(flags, signal);
}

async function localTarget(flags: TargetFlags, signal: AbortSignal): Promise<ConversionTarget> {
  const env = commandEnv();
  const { kube, layout } = await openCluster(env, clusterDir(flags.dir));
  const close = async () => kube.close();
  try {
    const clusterId = await readClusterId(kube, signal);
    const journalDir =
      flags.journalDir === undefined ? join(layout.dir, "conversions") : absolute(flags.journalDir);
    const lock = () => lockJournals(env, layout.dir);
    return { env: { ...env, kube }, clusterId, journalDir, lock, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function remoteTarget(flags: TargetFlags, signal: AbortSignal): Promise<ConversionTarget> {
  const env = commandEnv("unprivileged");
  const { createHttpClient } = await import("@longshore/kube");
  const kube = createHttpClient(env, await configOf(flags, "or run it in a pod"));
  const close = () => kube.close();
  try {
    const clusterId = await readClusterId(kube, signal);
    const state = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
    const journalDir =
      flags.journalDir === undefined
        ? join(state, "longshore", "conversions", clusterId)
        : absolute(flags.journalDir);
    const lock = async () => {
      await env.host.makeDirectory(journalDir);
      return lockJournals(env, journalDir);
    };
    return { env: { ...env, kube }, clusterId, journalDir, lock, close };
  } catch (error) {
    await close();
    throw error;
  }
}
