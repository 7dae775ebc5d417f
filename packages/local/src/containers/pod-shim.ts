/**
 * The program that holds one container: it is started by the process runtime in a mount namespace of its
 * own (where permitted), builds the container's root, starts the container, keeps what it says with the times and records how
 * it ended. It outlives the node agent. Arguments: the path of the container's `sandbox.json`.
 *
 * The container's root is an overlay over the machine's, with its changes in memory, so that nothing is
 * ever created in the machine's own root; volumes are bound into it at their mount paths. Its `/dev` is its own, with the
 * devices that every container has.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { backoffMs, invariant, systemClock } from "@longshore/runtime/basics";
import { writeFileAtomicSync } from "../programs/atomic-file.ts";
import { identifyProcess } from "../programs/process-identity.ts";
import { argvOf, environmentOf, exitCodeOfSignal } from "./container-command.ts";
import { feedContainer, inputName, makeContainerInput } from "./container-input.ts";
import { createOutputStamper, type LogStream, stampedLine } from "./log-line.ts";
import { pathInRoot } from "./path-in-root.ts";
import type { ContainerConfig, EndedContainer } from "./pod-runtime.ts";

/** What the shim is given. */
export interface ShimFile {
  readonly config: ContainerConfig;
  /** True when the shim runs in a mount namespace of its own. */
  readonly isolated: boolean;
  /** The run before this one. */
  readonly previous?: EndedContainer;
}

/** How a container has ended, as the shim records it. */
export interface ExitRecord {
  readonly exitCode: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly message?: string;
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

/** The devices of every container, and the links beside them. Source: OCI runtime specification, default devices. */
const devices = ["null", "zero", "full", "random", "urandom", "tty"];
const deviceLinks = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
  ptmx: "pts/ptmx",
};

/** Longest message of an end, in bytes. Source: core/v1 terminationMessagePath. */
const messageBytesMax = 4096;

/** The usual umask of containers. That of the node agent would keep a pod's own users out of its root. */
const containerUmask = 0o022;

/** Exit code of a pod whose root could not be made: its program never began. */
const rootFailed = 128;
const never = new AbortController().signal;

async function main(sandboxFile: string): Promise<void> {
  const podDir = dirname(sandboxFile);
  const { config, isolated } = JSON.parse(readFileSync(sandboxFile, "utf8")) as ShimFile;
  if (!claimPod(podDir)) return;
  // The sandbox file is gone: the pod was ended before it began. The check comes after the claim, because
  // the ending side removes the file before it looks for a claim: one side always sees the other.
  if (!existsSync(sandboxFile)) return;
  mkdirSync(dirname(config.logFile), { recursive: true, mode: 0o700 });
  const log = openSync(config.logFile, "a", 0o600);
  process.umask(containerUmask);
  const startedAt = systemClock.now().toISOString();
  const isWanted = () => existsSync(sandboxFile);
  const recordEnd = (exitCode: number, message?: string) => {
    const finishedAt = systemClock.now().toISOString();
    const record: ExitRecord = {
      exitCode,
      startedAt,
      finishedAt,
      ...(message === undefined ? {} : { message }),
    };
    return writeRecord(join(podDir, "exit.json"), record, isWanted);
  };
  const env = environmentOf(config, isolated);
  let command = argvOf(config, env);
  let root = "/";
  let input: Socket | undefined;
  try {
    if (config.stdin !== undefined) {
      input = makeContainerInput(join(podDir, inputName), config.stdin === "once");
    }
    if (isolated) {
      root = buildRoot(podDir, config);
      command = ["chroot", root, ...inDirectory(root, config.workingDir, command)];
    }
  } catch (error) {
    say(log, `cannot make the container's root or input: ${error instanceof Error ? error.message : error}`);
    await recordEnd(rootFailed);
    return;
  }
  const [program = "", ...args] = command;
  const cwd = isolated ? "/" : (config.workingDir ?? "/");
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(program, args, { env, cwd, detached: true, stdio: [stdin, "pipe", "pipe"] });
  if (input !== undefined && child.stdin !== null) feedContainer(input, child.stdin);
  const output = Object.entries({ stdout: child.stdout, stderr: child.stderr }).map(([name, stream]) => {
    invariant(stream !== null, "a piped stream is there");
    return keepOutput(log, name as LogStream, stream);
  });
  const end = async (exitCode: number) => {
    // What the container leaves behind would keep its mounts busy.
    if (child.pid !== undefined) kill(-child.pid, "SIGKILL");
    await endOfOutput(output);
    await recordEnd(exitCode, isolated ? lastMessage(root, config.terminationMessagePath) : undefined);
    process.exit(0);
  };
  child.on("error", (error) => {
    say(log, `cannot start ${command[0]}: ${error.message}`);
    void end(127);
  });
  // 128 and the number of the signal, as shells and container runtimes report it.
  child.on("exit", (code, signal) => void end(code ?? exitCodeOfSignal(signal)));
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => child.pid !== undefined && kill(child.pid, "SIGTERM"));
  }
  if (child.pid === undefined) return;
  const state = { shim: identifyProcess(process.pid), container: identifyProcess(child.pid), startedAt };
  // Without the record the container cannot be found later, so it is killed.
  if (!(await writeRecord(join(podDir, "state.json"), state, isWanted))) kill(-child.pid, "SIGKILL");
}

/** The command, started in a directory of the root, which is made where it is missing. */
function inDirectory(root: string, directory: string | undefined, command: readonly string[]): string[] {
  if (directory === undefined) return [...command];
  mkdirSync(pathInRoot(root, directory), { recursive: true });
  return ["env", "-C", directory, ...command];
}

/** What the container has left as its last message; undefined where it has left none. */
function lastMessage(root: string, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    // No waiting for a writer, should a pipe lie there.
    const file = openSync(pathInRoot(root, path), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const bytes = Buffer.alloc(messageBytesMax);
      const length = readSync(file, bytes, 0, messageBytesMax, null);
      return length === 0 ? undefined : bytes.toString("utf8", 0, length);
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
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

/** Builds the container's root directory inside this mount namespace and returns its path. */
function buildRoot(podDir: string, config: ContainerConfig): string {
  const base = join(podDir, "rootfs");
  const root = join(base, "root");
  mkdirSync(base, { recursive: true, mode: 0o700 });
  run("mount", ["-t", "tmpfs", "-o", "mode=755,size=64m", "tmpfs", base]);
  for (const part of ["upper", "work", "root"]) mkdirSync(join(base, part), { mode: 0o755 });
  try {
    const options = `lowerdir=/,upperdir=${join(base, "upper")},workdir=${join(base, "work")}`;
    run("mount", ["-t", "overlay", "-o", options, "overlay", root]);
    run("mount", ["--bind", "/proc", join(root, "proc")]);
    makeDevices(join(root, "dev"));
  } catch {
    bindSystem(root);
  }
  for (const mount of config.mounts) {
    // As the container will see it: a link to an absolute path must not lead into the machine's own root.
    const target = pathInRoot(root, mount.mountPath);
    if (mount.isDevice === true) requireOwnDevices(root, target);
    makeMountPoint(mount.hostPath, target);
    run("mount", ["--bind", mount.hostPath, target]);
    if (mount.readOnly) run("mount", ["-o", "remount,bind,ro", target]);
  }
  return root;
}

/** Nothing is made in the machine's `/dev`. @throws Error where the container has that instead of its own */
function requireOwnDevices(root: string, target: string): void {
  const own = join(root, "dev");
  const [containers, machines] = [statSync(own), statSync("/dev")];
  if (!target.startsWith(`${own}/`) || containers.dev !== machines.dev || containers.ino !== machines.ino) {
    return;
  }
  throw new Error(
    `devicePath ${target.slice(root.length)}: /dev of this container is the machine's; name a path outside of it`,
  );
}

/** A place of the same kind as what is bound to it: a part of a volume may be a file. */
function makeMountPoint(source: string, target: string): void {
  const isDirectory = statSync(source).isDirectory();
  mkdirSync(isDirectory ? target : dirname(target), { recursive: true });
  if (!isDirectory && !existsSync(target)) writeFileSync(target, "");
}

/** A `/dev` of the container's own: what it makes there is not made on the machine. */
function makeDevices(dev: string): void {
  run("mount", ["-t", "tmpfs", "-o", "mode=755,size=1m", "tmpfs", dev]);
  for (const name of devices) {
    writeFileSync(join(dev, name), "");
    run("mount", ["--bind", join("/dev", name), join(dev, name)]);
  }
  for (const name of ["pts", "shm"]) {
    mkdirSync(join(dev, name));
    if (existsSync(join("/dev", name))) run("mount", ["--bind", join("/dev", name), join(dev, name)]);
  }
  for (const [name, target] of Object.entries(deviceLinks)) symlinkSync(target, join(dev, name));
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

/** One stream of the container on its way to the log. */
interface KeptOutput {
  /** Resolves when everything that holds the stream has ended. */
  readonly ended: Promise<void>;
  /** Keeps what has come without an end of line. */
  end(): void;
}

function keepOutput(log: number, name: LogStream, stream: Readable): KeptOutput {
  const stamper = createOutputStamper(systemClock, name, (line) => {
    try {
      writeFileSync(log, line);
    } catch {
      // A full disk: the container goes on, without its log.
    }
  });
  stream.on("data", (bytes: Buffer) => stamper.take(bytes));
  stream.on("error", () => {});
  return { ended: new Promise((resolve) => stream.on("close", resolve)), end: () => stamper.end() };
}

/** How long the end of a container waits for its output, in milliseconds: what has left its group may hold it open. */
const outputTimeoutMs = 1000;

/** Keeps the rest of the output, before the end is recorded: who follows the log until then has all of it. */
async function endOfOutput(output: readonly KeptOutput[]): Promise<void> {
  const ended = Promise.all(output.map((one) => one.ended));
  await Promise.race([ended, systemClock.sleep(outputTimeoutMs, never)]);
  for (const one of output) one.end();
}

/** The last word to a pod's log: on a full disk it goes without. */
function say(log: number, text: string): void {
  try {
    writeFileSync(log, stampedLine(systemClock.now(), "stderr", text));
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
