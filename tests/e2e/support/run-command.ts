/** Runs the command as a user would, to its end. */
import { type SpawnOptions, spawn } from "node:child_process";
import { longshoreCommand } from "./test-cluster.ts";

/** How a command ended. */
export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs `longshore` with the arguments. */
export function longshore(...args: readonly string[]): Promise<Outcome> {
  return runProgram([...longshoreCommand, ...args]);
}

/** Runs any program. */
export function runProgram(argv: readonly string[], options: SpawnOptions = {}): Promise<Outcome> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}
