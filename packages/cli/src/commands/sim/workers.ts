/** Simulations in processes of their own, one a worker: each runs `longshore sim --json` on its share of the seeds. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { exitCodes, InterruptedError } from "../../exit.ts";
import type { SeedRange } from "./seed-range.ts";
import type { World, WorldSeedResult } from "./world.ts";

/** What the workers are to do. */
export interface WorkersOptions {
  readonly shares: readonly SeedRange[];
  readonly workers: number;
  readonly world: World;
  onResult(result: WorldSeedResult): void;
}

/** A worker ended without having simulated its share. */
export class WorkerError extends Error {
  override readonly name = "WorkerError";
}

/**
 * Runs every share; ends when all have. When one fails, or the signal aborts, the others are ended too.
 * @throws WorkerError, or the signal's reason
 */
export async function inWorkers(options: WorkersOptions, signal: AbortSignal): Promise<void> {
  const left = [...options.shares];
  const failed = new AbortController();
  const within = AbortSignal.any([signal, failed.signal]);
  const worker = async () => {
    // Workers take shares from one list: crossings of some seeds take much longer than others.
    for (let share = left.shift(); share !== undefined; share = left.shift()) {
      await simulateShare(share, options, within).catch((error: unknown) => {
        failed.abort(error);
        throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.workers, left.length) }, worker));
}

function simulateShare(
  { first, last }: SeedRange,
  { world, onResult }: WorkersOptions,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const [program = ""] = process.argv.slice(1);
  const args = [program, "sim", "--seeds", `${first}..${last}`, ...world.flags, "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const onAbort = () => void child.kill("SIGTERM");
  signal.addEventListener("abort", onAbort, { once: true });
  createInterface({ input: child.stdout }).on("line", (line) =>
    onResult(JSON.parse(line) as WorldSeedResult),
  );
  return ended(child).then(({ code, said }) => {
    signal.removeEventListener("abort", onAbort);
    signal.throwIfAborted();
    if (code === exitCodes.done || code === exitCodes.failed) return;
    if (code === exitCodes.interrupted) throw new InterruptedError(); // Ctrl-C reaches the whole terminal.
    throw new WorkerError(
      `the worker with seeds ${first} to ${last} ended with ${code ?? "a signal"}: ${said}`,
    );
  });
}

function ended(child: ChildProcess): Promise<{ readonly code: number | null; readonly said: string }> {
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-2_000);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, said: said.trim() }));
  });
}
