/** The directory of a cluster: who has it, by a lock of the kernel, and what may become one. */

import {
  type Host,
  HostError,
  lockDirectory,
  type PathLock,
  PathLockedError,
  shellWord,
} from "@longshore/runtime";
import { type ClusterConfig, driverNames } from "../layout/cluster-config.ts";
import { type ClusterLayout, layoutProblem } from "../layout/cluster-layout.ts";
import { ClusterDirectoryError } from "../layout/files.ts";
import { keepFromOthers, unsafeOwner } from "../processes/machine.ts";
import { identifyThisProcess, isAlive } from "../programs/process-identity.ts";
import { type CleanupEnv, supervisorName } from "./cleanup.ts";
import { identityOf } from "./cluster-processes.ts";

/** What the mark of a cluster directory points to; it need not exist. */
const clusterMark = "longshore-cluster";

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/**
 * Makes sure that the cluster's processes can be ended from here: of one in another container only its lock is seen.
 * @throws ClusterDirectoryError when one cannot
 */
export async function requireOwnProcesses(host: Host, layout: ClusterLayout): Promise<void> {
  const parts = [
    [layout.dir, supervisorName],
    [layout.apiDir, "apiserver"],
    [layout.cloudDir, "disk-cloud"],
  ] as const;
  for (const [part, name] of parts) {
    if ((await host.stat(part)) === undefined || !isLocked(part)) continue;
    const holder = await identityOf(host, layout, name);
    // Looked at again: it may have ended meanwhile.
    if ((holder !== undefined && isAlive(holder)) || !isLocked(part)) continue;
    throw new ClusterDirectoryError(
      `${part} is in use by a process that cannot be seen from here, perhaps in another container; nothing was changed: run this again there`,
    );
  }
}

/** Whether a process has the directory. */
function isLocked(dir: string): boolean {
  try {
    lockDirectory(dir).release();
    return false;
  } catch (error) {
    if (error instanceof PathLockedError) return true;
    throw error;
  }
}

/** Takes the directory for this process, until the lock is released. @throws ClusterDirectoryError when it is taken or holds other things */
export async function claimDirectory(
  env: CleanupEnv,
  layout: ClusterLayout,
  config: ClusterConfig,
  isPresent: boolean,
): Promise<PathLock> {
  const problem = layoutProblem(
    layout,
    config.nodes.map((n) => n.name),
    driverNames(config),
  );
  if (problem !== undefined) throw new ClusterDirectoryError(problem);
  const entries = (await env.host.readDirectory(layout.dir)) ?? [];
  if (entries.length > 0) {
    const owner = await identityOf(env.host, layout, supervisorName);
    if (isLocked(layout.dir)) {
      const holder = owner !== undefined && isAlive(owner) ? `process ${owner.pid}` : "in another container";
      throw new ClusterDirectoryError(
        `a cluster already runs in ${layout.dir} (${holder}): use another \`dir\`, or end it with "longshore cluster stop --dir ${shellWord(layout.dir)}"`,
      );
    }
    if (isPresent) return lockAsOwner(env, layout, false);
    const remedy = entries.includes("cluster.json")
      ? `it holds a cluster that is stopped; start that with "longshore cluster start --dir ${shellWord(layout.dir)}"`
      : entries.includes(baseName(layout.markFile))
        ? `it holds what is left of a cluster that never came up; remove that with "longshore cluster down --dir ${shellWord(layout.dir)}"`
        : "choose an empty or new directory";
    throw new ClusterDirectoryError(`${layout.dir} is not empty: ${remedy}`);
  }
  const unsafe = await unsafeOwner(layout.dir);
  if (unsafe !== undefined) {
    throw new ClusterDirectoryError(
      `${layout.dir} ${unsafe}, who could change what runs there: choose a directory of your own`,
    );
  }
  await env.host.makeDirectory(layout.dir);
  await keepFromOthers(layout.dir);
  return lockAsOwner(env, layout, true);
}

/** Takes the lock of a directory that is ours. @throws ClusterDirectoryError when another has just taken it */
async function lockAsOwner(env: CleanupEnv, layout: ClusterLayout, isNew: boolean): Promise<PathLock> {
  let lock: PathLock | undefined;
  try {
    lock = lockDirectory(layout.dir);
    if (isNew) await env.host.symlink(clusterMark, layout.markFile);
    await writeOwnPid(env, layout);
    return lock;
  } catch (error) {
    lock?.release();
    // Of two that come at once, one is first.
    const isTaken =
      error instanceof PathLockedError || (error instanceof HostError && error.code === "EEXIST");
    if (!isTaken) throw error;
    throw new ClusterDirectoryError(
      `another "longshore cluster up" has just taken ${layout.dir}: use another \`dir\``,
      { cause: error },
    );
  }
}

async function writeOwnPid(env: CleanupEnv, layout: ClusterLayout): Promise<void> {
  await env.host.makeDirectory(layout.runDir);
  const identity = identifyThisProcess();
  await env.host.writeFileAtomic(
    layout.pidFile(supervisorName),
    JSON.stringify({ ...identity, restarts: 0 }),
  );
}
