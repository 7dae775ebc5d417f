/** Programs beside a container: in its mount namespace and root, with its environment. Real form. */
import { spawn } from "node:child_process";
import type { ProcessIdentity } from "../programs/process-identity.ts";
import { environmentOf, exitCodeOfSignal } from "./container-command.ts";
import type { ExecProcess, ExecRequest } from "./pod-runtime.ts";
import type { ShimFile } from "./pod-shim.ts";
import { spawnOnTerminal } from "./terminal.ts";
import { writeToStream } from "./write-to-stream.ts";

/** Exit code of a program that could not be started, as shells report it. */
const notStarted = 127;

/**
 * Starts the program. The end of the request's signal kills it, with what it has started; one on a terminal is hung up, then killed.
 *
 * @param terminal the executable for {@link spawnOnTerminal}
 */
export function startExec(
  { config, isolated }: ShimFile,
  container: ProcessIdentity,
  { argv, signal, tty }: ExecRequest,
  terminal: string,
): ExecProcess {
  const inside = config.workingDir === undefined ? argv : ["env", "-C", config.workingDir, ...argv];
  const enter = ["nsenter", `--mount=/proc/${container.pid}/ns/mnt`];
  const root = `/proc/${container.pid}/root`;
  // Of the machine's directories not even the current one is left.
  const command = isolated ? [...enter, `--root=${root}`, `--wd=${root}`, "--", ...inside] : [...argv];
  const [program = "", ...args] = command;
  const env = environmentOf(config, isolated);
  const cwd = isolated ? "/" : (config.workingDir ?? "/");
  const onTerminal = tty === true ? spawnOnTerminal({ argv: command, env, cwd }, terminal) : undefined;
  const child =
    onTerminal?.child ?? spawn(program, args, { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const kill = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  };
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  // A program need not read what it is given.
  child.stdin.on("error", () => {});
  const exitCode = new Promise<number>((resolve) => {
    child.on("error", () => resolve(notStarted));
    child.on("exit", (code, by) => resolve(code ?? exitCodeOfSignal(by)));
  });
  void exitCode.then(() => signal.removeEventListener("abort", kill));
  return {
    async write(bytes) {
      await Promise.race([writeToStream(child.stdin, bytes), exitCode]);
    },
    endInput: () => void child.stdin.end(),
    stdout: child.stdout,
    stderr: child.stderr,
    exitCode,
    ...(onTerminal === undefined ? {} : { resize: onTerminal.resize }),
  };
}
