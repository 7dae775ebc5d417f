/** The command that restarts the driver under test: run without a shell, and left to itself once it has ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, withDeadline } from "@longshore/runtime";

/**
 * Runs the command to its end, with this process's whole environment: it is the user's own command, and restarts the driver
 * as the user would. What it starts in the background goes on, also when this process gets a Ctrl-C.
 * @throws Error with what the command wrote when it fails, and when it does not end
 */
export async function runRestartCommand(
  words: readonly string[],
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const [program = "", ...args] = words;
  const dir = mkdtempSync(join(tmpdir(), "longshore-"));
  const log = join(dir, "restart");
  // A file and not a pipe: the driver keeps writing to it after the command has ended.
  const output = openSync(log, "a", 0o600);
  try {
    const child = spawn(program, args, { stdio: ["ignore", output, output], detached: true });
    const code = await withDeadline(systemClock, withinMs, signal, (deadline) =>
      exitOf(child, deadline),
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new Error(
        `--restart-cmd "${words.join(" ")}" did not end: it must start the driver in the background`,
        { cause: error },
      );
    });
    child.unref();
    if (code !== 0) {
      const said = readFileSync(log, "utf8").trim().split("\n").slice(-5).join("; ");
      throw new Error(
        `--restart-cmd "${words.join(" ")}" ended with ${code}${said === "" ? "" : `: ${said}`}`,
      );
    }
  } finally {
    closeSync(output);
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * The exit code, or the signal's name, or why it could not be started. Rejects with the signal's reason, once the
 * command has been ended, but not what it has started: the driver may be among that.
 */
function exitOf(child: ChildProcess, signal: AbortSignal): Promise<number | string> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, name) => {
      if (signal.aborted) reject(signal.reason);
      else resolve(code ?? name ?? "no exit code");
    });
    signal.addEventListener("abort", () => child.kill("SIGKILL"), { once: true });
  });
}
