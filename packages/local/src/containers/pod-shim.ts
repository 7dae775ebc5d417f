/**
 * The program that holds one pod: it is started by the process runtime in a mount namespace of its
 * own (where permitted), builds the pod's root, starts the container and records how it ended. It
 * outlives the node agent. Arguments: the path of the pod's `sandbox.json`.
 *
 * The pod's root is an overlay over the machine's, with its changes in memory, so that nothing is
 * ever created in the machine's own root; volumes are bound into it at their mount paths.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { backoffMs, systemClock } from "@longshore/runtime/basics";
import { writeFileAtomicSync } from "../programs/atomic-file.ts";
import { identifyProcess } from "../programs/process-identity.ts";
import { pathInRoot } from "./path-in-root.ts";
import { expandVariables, mountVariable, type PodSandbox } from "./pod-runtime.ts";

/** What the shim is given. */
export interface ShimFile {
  readonly sandbox: PodSandbox;
  /** True when the shim runs in a mount namespace of its own. */
  readonly isolated: boolean;
}

/** Parts of the machine's root that a pod sees where an overlay over the root is not possible. */
const systemDirectories = [
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/usr",
  "/etc",
  "/opt",
  "/proc",
  "/dev",
];

/** Those that programs must be able to write to. */
const deviceDirectories = ["/proc", "/dev"];

/** The usual umask of containers. That of the node agent would keep a pod's own users out of its root. */
const containerUmask = 0o022;

/** Exit code of a pod whose root could not be made: its program never began. */
const rootFailed = 128;
const never = new AbortController().signal;

async function main(sandboxFile: string): Promise<void> {
  const podDir = dirname(sandboxFile);
  const { sandbox, isolated } = JSON.parse(readFileSync(sandboxFile, "utf8")) as ShimFile;
  if (!claimPod(podDir)) return;
  // The sandbox file is gone: the pod was ended before it began. The check comes after the claim, because
  // the ending side removes the file before it looks for a claim: one side always sees the other.
  if (!existsSync(sandboxFile)) return;
  mkdirSync(dirname(sandbox.logFile), { recursive: true, mode: 0o700 });
  const log = openSync(sandbox.logFile, "a", 0o600);
  process.umask(containerUmask);
  const env: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOSTNAME: sandbox.podName,
    HOME: homeDirectory(),
  };
  for (const mount of sandbox.mounts) {
    // Without a root of its own the program finds a volume only where the node has it.
    env[mountVariable(mount.volumeName)] = isolated ? mount.mountPath : mount.hostPath;
  }
  Object.assign(env, sandbox.env);
  const argv = sandbox.argv.map((part) => expandVariables(part, env));
  let command = argv;
  try {
    if (isolated) command = ["chroot", buildRoot(podDir, sandbox), ...argv];
  } catch (error) {
    say(log, `cannot make the pod's root: ${error instanceof Error ? error.message : error}\n`);
    await writeRecord(join(podDir, "exit.json"), { exitCode: rootFailed }, () => existsSync(sandboxFile));
    return;
  }
  const isWanted = () => existsSync(sandboxFile);
  const [program = "", ...args] = command;
  const child = spawn(program, args, { env, cwd: "/", detached: true, stdio: ["ignore", log, log] });
  const end = async (exitCode: number) => {
    // What the container leaves behind would keep its mounts busy.
    if (child.pid !== undefined) kill(-child.pid, "SIGKILL");
    await writeRecord(join(podDir, "exit.json"), { exitCode }, isWanted);
    process.exit(0);
  };
  child.on("error", (error) => {
    say(log, `cannot start ${argv[0]}: ${error.message}\n`);
    void end(127);
  });
  // 128 and the number of the signal, as shells and container runtimes report it.
  child.on("exit", (code, signal) => void end(code ?? (signal === "SIGKILL" ? 137 : 143)));
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => child.pid !== undefined && kill(child.pid, "SIGTERM"));
  }
  if (child.pid === undefined) return;
  const state = { shim: identifyProcess(process.pid), container: identifyProcess(child.pid) };
  // Without the record the container cannot be found later, so it is killed.
  if (!(await writeRecord(join(podDir, "state.json"), state, isWanted))) kill(-child.pid, "SIGKILL");
}

/** As container runtimes set it: that of the user in the machine's list of users, not in who starts the cluster's environment. */
function homeDirectory(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "/"; // The user is not in the list.
  }
}

/**
 * Makes this shim the only one of its pod: a node agent that was killed right after it had started one
 * is followed by an agent that starts another. False when a shim has been there before.
 */
function claimPod(podDir: string): boolean {
  const file = join(podDir, `claim-${process.pid}`);
  try {
    writeFileAtomicSync(file, JSON.stringify({ shim: identifyProcess(process.pid), starting: true }));
    linkSync(file, join(podDir, "state.json"));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(file, { force: true });
  }
}

/** Builds the pod's root directory inside this mount namespace and returns its path. */
function buildRoot(podDir: string, sandbox: PodSandbox): string {
  const base = join(podDir, "rootfs");
  const root = join(base, "root");
  mkdirSync(base, { recursive: true, mode: 0o700 });
  run("mount", ["-t", "tmpfs", "-o", "mode=755,size=64m", "tmpfs", base]);
  for (const part of ["upper", "work", "root"]) mkdirSync(join(base, part), { mode: 0o755 });
  try {
    const options = `lowerdir=/,upperdir=${join(base, "upper")},workdir=${join(base, "work")}`;
    run("mount", ["-t", "overlay", "-o", options, "overlay", root]);
    for (const path of ["/proc", "/dev"]) run("mount", ["--bind", path, join(root, path)]);
  } catch {
    bindSystem(root);
  }
  for (const mount of sandbox.mounts) {
    // As the container will see it: a link to an absolute path must not lead into the machine's own root.
    const target = pathInRoot(root, mount.mountPath);
    if (mount.isDevice === true) makeDeviceFile(root, target);
    else mkdirSync(target, { recursive: true });
    run("mount", ["--bind", mount.hostPath, target]);
    if (mount.readOnly) run("mount", ["-o", "remount,bind,ro", target]);
  }
  return root;
}

/** The file that a device is bound on. @throws Error where it would be made in the machine's own `/dev` */
function makeDeviceFile(root: string, target: string): void {
  const own = join(root, "dev");
  const [pods, machines] = [statSync(own), statSync("/dev")];
  if (target.startsWith(`${own}/`) && pods.dev === machines.dev && pods.ino === machines.ino) {
    throw new Error(
      `devicePath ${target.slice(root.length)}: /dev of this pod is the machine's; name a path outside of it`,
    );
  }
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, "");
}

/** The fallback where the kernel refuses the overlay: read-only binds of what programs need. */
function bindSystem(root: string): void {
  const code = dirname(dirname(new URL(import.meta.url).pathname));
  for (const path of [...systemDirectories, dirname(process.execPath), code]) {
    try {
      mkdirSync(join(root, path), { recursive: true });
      run("mount", ["--bind", path, join(root, path)]);
      if (!deviceDirectories.includes(path)) run("mount", ["-o", "remount,bind,ro", join(root, path)]);
    } catch {
      // Not every machine has every one of these.
    }
  }
}

function run(program: string, args: readonly string[]): void {
  execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"], timeout: 30_000 });
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

/** The last word to a pod's log: on a full disk it goes without. */
function say(log: number, text: string): void {
  try {
    writeFileSync(log, text);
  } catch {
    // How it ended is in its record.
  }
}

/**
 * Writes the record. Retries after a failure (a full disk, say), because nothing else stores its content. False when
 * it could not be written and is not wanted any more.
 */
async function writeRecord(path: string, record: object, isWanted: () => boolean): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      writeFileAtomicSync(path, JSON.stringify(record));
      return true;
    } catch {
      if (!isWanted()) return false;
      await systemClock.sleep(backoffMs({ initialMs: 50, maximumMs: 1000 }, attempt), never);
    }
  }
}

await main(process.argv[2] ?? "");
