/** The processes of a cluster by their pid files. */

import type { Host } from "@longshore/runtime";
import type { ClusterLayout } from "../layout/cluster-layout.ts";
import { readJson } from "../layout/files.ts";
import { isAlive, type ProcessIdentity, processAgeMs, signalProcess } from "../programs/process-identity.ts";

/** A process of the cluster as its pid file knows it. */
export interface ProcessStatus {
  readonly name: string;
  readonly pid: number;
  readonly restarts: number;
  readonly alive: boolean;
  /** How long it has run, in milliseconds; undefined where that is not known. */
  readonly ageMs: number | undefined;
}

/** The processes of the cluster. */
export async function processesOf(
  env: { readonly host: Host },
  layout: ClusterLayout,
): Promise<ProcessStatus[]> {
  const files = (await env.host.readDirectory(layout.runDir)) ?? [];
  const statuses: ProcessStatus[] = [];
  for (const file of files.filter((f) => f.endsWith(".json"))) {
    const record = (await readJson(env.host, `${layout.runDir}/${file}`).catch(() => undefined)) as
      | (ProcessIdentity & { readonly restarts?: number })
      | undefined;
    if (record === undefined) continue; // Being written just now.
    const name = file.slice(0, -".json".length);
    const alive = isAlive(record);
    const ageMs = alive ? processAgeMs(record) : undefined;
    statuses.push({ name, pid: record.pid, restarts: record.restarts ?? 0, alive, ageMs });
  }
  return statuses;
}

/** Sends a signal to a process of the cluster; false when it does not run. */
export async function signalClusterProcess(
  host: Host,
  layout: ClusterLayout,
  processName: string,
  signal: NodeJS.Signals,
): Promise<boolean> {
  const identity = await identityOf(host, layout, processName);
  return identity !== undefined && signalProcess(identity, signal);
}

/** The process of a node's agent. */
export const agentProcess = (nodeName: string): string => `node-agent-${nodeName}`;

/** The process of a node's drivers and their registrars. */
export const nodeDriverProcess = (nodeName: string): string => `csi-node-${nodeName}`;

/** A process of the cluster by its pid file, alive or not. */
export async function identityOf(
  host: Host,
  layout: ClusterLayout,
  processName: string,
): Promise<ProcessIdentity | undefined> {
  const record = await readJson(host, layout.pidFile(processName)).catch(() => undefined);
  return record as ProcessIdentity | undefined;
}
