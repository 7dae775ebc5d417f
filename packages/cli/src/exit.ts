/** How a command ends: exit codes, one clear sentence for a failure, Ctrl-C that cleans up. */
import { errorChain, foreignLines, systemClock } from "@longshore/runtime/basics";
import { clusterFields, errorInFlags } from "./field-flags.ts";

/** Exit codes of every verb. */
export const exitCodes = { done: 0, failed: 1, usage: 2, timedOut: 3, partly: 4, interrupted: 130 } as const;

/** A failure whose message is meant for the user as it is. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command was ended by Ctrl-C or SIGTERM and has cleaned up. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
  constructor() {
    super("interrupted");
  }
}

/** Names of errors that mean invalid usage; matched by name so that their modules are not loaded. */
const usageErrors: ReadonlySet<string> = new Set([
  "UsageError",
  "EmulatedVersionError",
  "FeatureGateError",
  "UnknownPluginError",
  "DriverCommandError",
]);

/** Names of errors which say that something did not happen in time; the command may be run again. */
const timeoutErrors: ReadonlySet<string> = new Set(["StepTimeoutError"]);

let outputIsOptional = false;

/**
 * A long-running command continues when its output can no longer be written: the reader has gone, or the disk
 * is full.
 */
export function makeOutputOptional(): void {
  outputIsOptional = true;
}

/** See {@link makeOutputOptional}. */
export function isOutputOptional(): boolean {
  return outputIsOptional;
}

/** The sentence for a failure, with flags in place of fields. */
export function failureText(error: unknown): string {
  // The text contains text from drivers, servers and programs: sanitize it.
  return foreignLines(errorChain(inUserFlags(error)), Number.POSITIVE_INFINITY);
}

const inUserFlags = (error: unknown) => (error instanceof Error ? errorInFlags(error, clusterFields) : error);

/** Writes one sentence to stderr and returns the exit code. LONGSHORE_DEBUG=1 adds the stack. */
export function reportFailure(error: unknown): number {
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  const shown = inUserFlags(error);
  process.stderr.write(`longshore: ${failureText(error)}\n`);
  if (process.env.LONGSHORE_DEBUG === "1" && shown instanceof Error) process.stderr.write(`${shown.stack}\n`);
  if (!(error instanceof Error)) return exitCodes.failed;
  if (timeoutErrors.has(error.name)) return exitCodes.timedOut;
  return usageErrors.has(error.name) ? exitCodes.usage : exitCodes.failed;
}

/** A signal that comes so soon after the first is the same one: npx and terminals both pass Ctrl-C on. */
const sameSignalWithinMs = 1000;

/**
 * Runs `work` with a signal that aborts on Ctrl-C, SIGTERM or one of `also`, so that it can clean up; a
 * second Ctrl-C ends the process at once.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  also: readonly NodeJS.Signals[] = [],
): Promise<T> {
  const signals: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", ...also];
  const controller = new AbortController();
  let askedMs: number | undefined;
  const interrupt = () => {
    const nowMs = systemClock.monotonicMs();
    if (askedMs !== undefined) {
      if (nowMs - askedMs > sameSignalWithinMs) process.exit(exitCodes.interrupted);
      return;
    }
    askedMs = nowMs;
    controller.abort(new InterruptedError());
  };
  for (const name of signals) process.on(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (error) {
    // What could not be cleaned up must be known; anything else is how the work was interrupted.
    if (controller.signal.aborted && !isCleanupFailure(error)) throw new InterruptedError();
    throw error;
  } finally {
    for (const name of signals) process.off(name, interrupt);
  }
}

function isCleanupFailure(error: unknown): boolean {
  return error instanceof Error && error.name === "CleanupError";
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
