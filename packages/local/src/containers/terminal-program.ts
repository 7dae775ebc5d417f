/**
 * The first program on a terminal: `script` starts it in place of a shell, so that no shell reads what a user wrote. It starts the
 * program that is asked for and waits for it. On descriptor 3 comes a line of JSON with what to start, then one for each size.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { constants } from "node:os";
import { createInterface } from "node:readline";
import { systemClock } from "@longshore/runtime/basics";
import { exitCodeOfSignal } from "./container-command.ts";
import type { TerminalSize } from "./pod-runtime.ts";
import type { TerminalCommand } from "./terminal.ts";

/** How long a program may take to end once its terminal has gone, in milliseconds. */
const hangUpMs = 1000;
/** Exit code of a program that could not be started, as shells report it. */
const notStarted = 127;

function start({ argv: [program = "", ...args], env, cwd }: TerminalCommand): ChildProcess {
  const child = spawn(program, args, { env, cwd, stdio: "inherit" });
  child.on("error", (error) => {
    process.stderr.write(`cannot start ${program}: ${error.message}\r\n`);
    process.exit(notStarted);
  });
  child.on("exit", (code, signal) => process.exit(code ?? exitCodeOfSignal(signal)));
  return child;
}

/** The terminal has gone: a shell is asked, so that it ends what it has started. */
async function hangUp(): Promise<void> {
  child?.kill("SIGHUP");
  await systemClock.sleep(hangUpMs, new AbortController().signal);
  child?.kill("SIGKILL");
  process.exit(128 + constants.signals.SIGHUP);
}

function resize({ columns, rows }: TerminalSize): void {
  const args = ["rows", String(rows), "cols", String(columns)];
  spawn("stty", args, { stdio: ["inherit", "ignore", "ignore"] }).on("error", () => {});
}

let child: ChildProcess | undefined;
// What is typed is the program's: this one, of the same process group, outlives it. Listened to before there is a program to end.
for (const signal of ["SIGINT", "SIGQUIT", "SIGTSTP"] as const) process.on(signal, () => {});
process.on("SIGHUP", () => void hangUp());
const control = new Socket({ fd: 3 }).on("error", () => {});
for await (const line of createInterface({ input: control })) {
  if (child === undefined) child = start(JSON.parse(line) as TerminalCommand);
  else resize(JSON.parse(line) as TerminalSize);
}
