/** Running programs with execFile, never a shell. */
import { execFile } from "node:child_process";
import { HostError, type ProgramOptions, type ProgramResult } from "./host.ts";
import { codeOfText, errnoOf, toHostError } from "./to-host-error.ts";

const outputBytesMax = 16 * 1024 * 1024;

/** A tool that takes longer hangs in the kernel; its operation fails then and is repeated by the caller. */
const toolTimeoutMs = 120_000;

/** How a system tool is run. */
export interface ToolOptions {
  /** Exit codes that mean success; default 0 alone. */
  readonly okCodes?: readonly number[];
  /** Milliseconds that it may take; default two minutes. */
  readonly timeoutMs?: number;
  /** Called with the exit code of a success. */
  readonly onCode?: (code: number) => void;
}

/** Runs a program to its end. The {@link ProgramOptions} say what it sees. */
export function runProgram(program: string, options: ProgramOptions): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    options.signal.throwIfAborted();
    const env = { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin", ...options.env };
    const settings = {
      env,
      signal: options.signal,
      killSignal: "SIGKILL",
      maxBuffer: outputBytesMax,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    } as const;
    const child = execFile(program, [...options.args], settings, (error, stdout, stderr) => {
      if (options.signal.aborted) reject(options.signal.reason);
      else if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === "number") resolve({ code: error.code, stdout, stderr });
      else if (errnoOf(error) !== undefined) reject(toHostError("runProgram", program, error));
      else resolve({ code: -1, stdout, stderr });
    });
    if (options.input === undefined) return;
    // A program that ends before it has read all of it says so by its exit code.
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input);
  });
}

/** A system tool that did not do what it was asked. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Runs a system tool for `operation` on `path` and returns its output. @throws HostError unless it succeeds */
export function runTool(
  operation: string,
  path: string,
  tool: string,
  args: readonly string[],
  { okCodes = [0], timeoutMs = toolTimeoutMs, onCode = () => {} }: ToolOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
      timeout: timeoutMs,
      killSignal: "SIGKILL",
    } as const;
    execFile(tool, [...args], settings, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number" && okCodes.includes(code)) {
        onCode(code);
        resolve(stdout);
      } else reject(toolFailure(operation, path, tool, error, stderr));
    });
  });
}

function toolFailure(
  operation: string,
  path: string,
  tool: string,
  error: unknown,
  stderr: string,
): HostError {
  if (errnoOf(error) === "ENOENT") {
    const cause = new ToolError(
      `the program ${tool} is not installed: install it or use another file system`,
      {
        cause: error,
      },
    );
    return new HostError(operation, path, "ENOSYS", cause);
  }
  // Node's own error holds the whole command line, and mount flags may be secret: it is not passed on.
  const text = stderr.trim().replaceAll(/\s*\n\s*/g, "; ");
  const cause = new ToolError(text === "" ? `${tool} failed` : text);
  return new HostError(operation, path, codeOfText(stderr), cause);
}
