/** What a power cut takes from a cluster of processes, as far as a machine that goes on can show it. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

interface PidFile {
  readonly pid: number;
}

/** What a pid file of a process of a cluster says. */
export function readPid(file: string): number {
  return (JSON.parse(readFileSync(file, "utf8")) as PidFile).pid;
}

/** A container's processes. */
export interface ContainerProcesses {
  readonly shim: number;
  readonly container: number;
  /** The container's first process, and those in groups of their own: all of its mount namespace but the shim. */
  readonly all: readonly number[];
}

/** The processes of the containers that run on a node. @param podUID only those of that pod */
export function containersOn(dir: string, node: string, podUID?: string): ContainerProcesses[] {
  const pods = join(dir, "p", node);
  const files = readdirSync(pods)
    .filter((uid) => podUID === undefined || uid === podUID)
    .flatMap((uid) => readdirSync(join(pods, uid)).map((name) => join(pods, uid, name, "state.json")));
  return files.filter(existsSync).flatMap((file) => {
    const state = JSON.parse(readFileSync(file, "utf8")) as Partial<Record<"shim" | "container", PidFile>>;
    const [shim, container] = [state.shim?.pid, state.container?.pid];
    if (shim === undefined || container === undefined) return [];
    const others = processesInMountNamespaceOf(container).filter((pid) => pid !== shim && pid !== container);
    return [{ shim, container, all: [container, ...others] }];
  });
}

function processesInMountNamespaceOf(pid: number): number[] {
  const namespaceOf = (name: string | number) => {
    try {
      return readlinkSync(`/proc/${name}/ns/mnt`);
    } catch {
      return undefined; // It has just ended.
    }
  };
  const namespace = namespaceOf(pid);
  if (namespace === undefined || namespace === namespaceOf("self")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && namespaceOf(name) === namespace)
    .map(Number);
}

/** Kills (SIGKILL) those that still run. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** All that a power cut takes: every process of the cluster and of its pods and, with `takesMounts`, mounts and loop devices. */
export function endLikePowerCut(dir: string, takesMounts: boolean): void {
  // The supervisor first, so that it starts nothing again.
  process.kill(readPid(join(dir, "run/supervisor.json")), "SIGKILL");
  const containers = readdirSync(join(dir, "p")).flatMap((node) => containersOn(dir, node));
  killAll(
    readdirSync(join(dir, "run"))
      .filter((name) => name.endsWith(".json"))
      .map((name) => readPid(join(dir, "run", name))),
  );
  killAll(containers.flatMap(({ shim, all }) => [shim, ...all]));
  if (!takesMounts) return;
  const targets = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((target) => target === dir || target.startsWith(`${dir}/`));
  for (const target of targets.reverse()) execFileSync("umount", ["-l", target]);
  const disks = join(dir, "cloud/disks");
  for (const disk of readdirSync(disks)) {
    const found = execFileSync("losetup", ["-j", join(disks, disk)], { encoding: "utf8" });
    const device = found.split(":")[0];
    if (device !== undefined && device !== "") execFileSync("losetup", ["-d", device]);
  }
}
