/**
 * Programs on a terminal of their own. Real form. Node cannot make a pseudo-terminal; `script` of util-linux can, and starts what
 * `SHELL` names on it. That is a file which starts `terminal-program.ts`, and no shell: what to run goes there as data.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { childEnvironment } from "../programs/child-environment.ts";
import type { TerminalSize } from "./pod-runtime.ts";

/** What is started on a terminal. */
export interface TerminalCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** A program on a terminal. Its standard error comes with its standard output. */
export interface TerminalProcess {
  readonly child: ChildProcessWithoutNullStreams;
  resize(size: TerminalSize): void;
}

/** Longest first line of a program file, less what stands around the path. Source: Linux, `BINPRM_BUF_SIZE`. */
const interpreterBytesMax = 250;

/**
 * The text of the file that `script` starts; it has to be executable.
 *
 * @throws Error where this Node lies at a path that the first line of a program cannot hold
 */
export function terminalFileText(node = process.execPath): string {
  if (/\s/.test(node) || Buffer.byteLength(node) > interpreterBytesMax) {
    throw new Error(
      `no terminal: the path of node, "${node}", is too long or holds spaces; install it elsewhere`,
    );
  }
  const program = new URL("./terminal-program.js", import.meta.url).href;
  return `#!${node}\nimport(${JSON.stringify(program)});\n`;
}

/** Starts the program, in a process group and a session of its own. @param file an executable with {@link terminalFileText} */
export function spawnOnTerminal(command: TerminalCommand, file: string): TerminalProcess {
  const child = spawn("script", ["--quiet", "--return", "--flush", "--command", "program", "/dev/null"], {
    env: { ...childEnvironment(), SHELL: file },
    cwd: "/",
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
  const control = child.stdio[3] as Writable;
  // It may end before it has read.
  control.on("error", () => {});
  const send = (line: object) => void control.write(`${JSON.stringify(line)}\n`);
  const env = { TERM: "xterm", ...command.env };
  send({ ...command, env });
  return {
    child: child as unknown as ChildProcessWithoutNullStreams,
    resize: ({ columns, rows }) => send({ columns, rows }),
  };
}
