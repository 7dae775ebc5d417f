/**
 * Takes a local cluster down to nothing: processes, pods, mounts, loop devices, sockets, files. Works
 * on whatever is left, so it also cleans up after a supervisor that was killed; every step may be
 * repeated.
 */
import { type Clock, errorChain, type Host, type Logger } from "@longshore/runtime";
import { createProcessPodRuntime } from "../containers/process-pod-runtime.ts";
import { isAlive, type ProcessIdentity } from "../processes/process-identity.ts";
import { endProcess } from "../processes/supervisor.ts";
import { readJson } from "./files.ts";
import type { ClusterLayout } from "./layout.ts";

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

/** Ends every process of the cluster, the supervisor (unless it is the caller) first. */
export async function endClusterProcesses(
  env: CleanupEnv,
  layout: ClusterLayout,
  options: { readonly sparePid?: number; readonly signal: AbortSignal },
): Promise<void> {
  const files = (await env.host.readDirectory(layout.runDir)) ?? [];
  const names = files.filter((f) => f.endsWith(".json")).map((f) => f.slice(0, -".json".length));
  const supervisorFirst = [...names].sort(
    (a, b) => Number(b === supervisorName) - Number(a === supervisorName),
  );
  for (const name of supervisorFirst) {
    const identity = (await readJson(env.host, layout.pidFile(name)).catch(() => undefined)) as
      | ProcessIdentity
      | undefined;
    if (identity !== undefined && identity.pid !== options.sparePid && isAlive(identity)) {
      // A supervisor that is told to end cleans up by itself and may take its time.
      const graceMs = name === supervisorName ? 30_000 : 3000;
      await endProcess(env, identity, { graceMs, signal: options.signal });
    }
    await env.host.removeFile(layout.pidFile(name));
  }
}

/** Removes everything that the cluster has left on the machine, and its directory. */
export async function removeCluster(
  env: CleanupEnv,
  layout: ClusterLayout,
  signal: AbortSignal,
): Promise<void> {
  const { host } = env;
  const left: string[] = [];
  for (const node of (await host.readDirectory(`${layout.dir}/p`)) ?? []) {
    const runtime = createProcessPodRuntime(env, { stateDir: layout.podStateDir(node) });
    for (const podUID of await runtime.list(signal)) {
      await runtime.terminate(podUID, 1000, signal).catch((error) => left.push(errorChain(error)));
    }
  }
  const unmountBelow = async (isOurs: (target: string) => boolean) => {
    const targets = (await host.listMounts(layout.dir)).map((mount) => mount.target).filter(isOurs);
    for (const target of targets.reverse()) {
      await retry(env, signal, () => host.unmount(target)).catch((error) => left.push(errorChain(error)));
    }
  };
  await unmountBelow((target) => target !== layout.dir);
  const disks = `${layout.cloudDir}/disks`;
  for (const name of (await host.readDirectory(disks)) ?? []) {
    await retry(env, signal, () => host.detachLoop(`${disks}/${name}`)).catch((error) =>
      left.push(errorChain(error)),
    );
  }
  // The directory's own mount comes last: a loop device holds its backing file open on it.
  await unmountBelow((target) => target === layout.dir);
  if (left.length > 0) {
    throw new CleanupError(
      `${layout.dir} is not clean (${left.join("; ")}): end what uses it and run "longshore cluster down" again`,
    );
  }
  for (const name of (await host.readDirectory(layout.dir)) ?? []) {
    const path = `${layout.dir}/${name}`;
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
