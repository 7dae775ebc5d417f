/**
 * Brings a local cluster to rest: processes, pods, mounts and loop devices end, its files stay, so that it can be started
 * again; or takes it down to nothing. Works on whatever is left, so it also cleans up after a supervisor that was
 * killed; every step may be repeated.
 */
import { type Clock, errorChain, type Host, type Logger } from "@longshore/runtime";
import { createProcessPodRuntime } from "../containers/process-pod-runtime.ts";
import type { ClusterLayout } from "../layout/cluster-layout.ts";
import { readJson } from "../layout/files.ts";
import { endProcess } from "../processes/supervisor.ts";
import { isAlive, type ProcessIdentity } from "../programs/process-identity.ts";

/** What a clean-up needs. */
export interface CleanupEnv {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly host: Host;
}

/** Something of the cluster could not be removed. */
export class CleanupError extends Error {
  override readonly name = "CleanupError";
}

/** Name of the supervisor's own pid file. */
export const supervisorName = "supervisor";

/**
 * Ends every process of the cluster, the supervisor (unless it is the caller, which stays as it is) first; it gets
 * `supervisorMs`, in milliseconds and at least 30 s, to end the others.
 */
export async function endClusterProcesses(
  env: CleanupEnv,
  layout: ClusterLayout,
  options: { readonly isSupervisor?: boolean; readonly supervisorMs?: number; readonly signal: AbortSignal },
): Promise<void> {
  const files = (await env.host.readDirectory(layout.runDir)) ?? [];
  const names = files
    .filter((f) => f.endsWith(".json"))
    .map((f) => f.slice(0, -".json".length))
    .filter((name) => !(options.isSupervisor === true && name === supervisorName));
  // It would start again what is ended here.
  const supervisorFirst = [...names].sort(
    (a, b) => Number(b === supervisorName) - Number(a === supervisorName),
  );
  for (const name of supervisorFirst) {
    const identity = (await readJson(env.host, layout.pidFile(name)).catch(() => undefined)) as
      | ProcessIdentity
      | undefined;
    if (identity !== undefined && isAlive(identity)) {
      // A supervisor cleans up by itself on SIGTERM and may take its time.
      const graceMs = name === supervisorName ? Math.max(30_000, options.supervisorMs ?? 0) : 3000;
      await endProcess(env, identity, { graceMs, signal: options.signal });
    }
    await env.host.removeFile(layout.pidFile(name));
  }
}

/** How long a container may take to end before it is killed, in milliseconds. */
const podGraceMs = { stop: 5000, down: 1000 } as const;

/**
 * Ends the pods of a cluster whose processes have ended, and lets go of its mounts and loop devices. Nothing is removed:
 * disks and API objects are as they were. @throws CleanupError
 */
export async function settleCluster(
  env: CleanupEnv,
  layout: ClusterLayout,
  verb: "stop" | "down",
  signal: AbortSignal,
): Promise<void> {
  const { host } = env;
  const left: string[] = [];
  const note = (error: unknown) => void left.push(errorChain(error));
  for (const node of (await host.readDirectory(`${layout.dir}/p`)) ?? []) {
    const runtime = createProcessPodRuntime(env, { stateDir: layout.podStateDir(node) });
    const pods = await runtime.list(signal);
    await Promise.all(pods.map((pod) => runtime.terminate(pod, podGraceMs[verb], signal).catch(note)));
  }
  const unmountBelow = async (isOurs: (target: string) => boolean) => {
    const targets = (await host.listMounts(layout.dir)).map((mount) => mount.target).filter(isOurs);
    // The last mount first: it may lie on an earlier one.
    for (const target of targets.reverse()) {
      await retry(env, signal, () => host.unmount(target)).catch(note);
    }
  };
  await unmountBelow((target) => target !== layout.dir);
  const disks = `${layout.cloudDir}/disks`;
  for (const name of (await host.readDirectory(disks)) ?? []) {
    await retry(env, signal, () => host.detachLoop(`${disks}/${name}`)).catch(note);
  }
  // The directory's own mount comes last: a loop device holds its backing file open on it.
  await unmountBelow((target) => target === layout.dir);
  if (left.length > 0) {
    throw new CleanupError(
      `${layout.dir} is not clean (${left.join("; ")}): end what uses it and run "longshore cluster ${verb}" again`,
    );
  }
}

/** Removes everything that the cluster has left on the machine, and its directory with the disks. */
export async function removeCluster(
  env: CleanupEnv,
  layout: ClusterLayout,
  signal: AbortSignal,
): Promise<void> {
  const { host } = env;
  await settleCluster(env, layout, "down", signal);
  for (const name of (await host.readDirectory(layout.dir)) ?? []) {
    const path = `${layout.dir}/${name}`;
    // The mark goes with the directory: what a run that was cut off leaves still counts as a cluster's.
    if (path !== layout.markFile) await host.removeTree(path);
  }
  await host.removeTree(layout.dir);
}

/** A device or mount may stay busy for a moment after its last user has gone. */
async function retry(env: CleanupEnv, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= 20) throw error;
      await env.clock.sleep(50, signal);
    }
  }
}
