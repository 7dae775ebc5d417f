/** What an upgrade and a removal share: limits, progress reports, waiting. */
import { isTooManyRequests, KubeApiError, type KubeEnv, KubeTransportError } from "@longshore/kube";
import { type BackoffPolicy, backoffMs, DeadlineError, errorChain, withDeadline } from "@longshore/runtime";

/** How a rollout is limited and followed. */
export interface RolloutOptions {
  readonly signal: AbortSignal;
  /** The whole must be done within this time, in milliseconds; default 10 min. */
  readonly timeoutMs?: number;
  /** Says what would be done, and does nothing. */
  readonly dryRun?: boolean;
  /** Called with each line of progress, without a line end. */
  readonly onProgress?: (line: string) => void;
}

/** The rollout is not possible, or did not complete. The message says what to do. */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
}

/** One rollout at work. */
export interface Rollout {
  readonly env: KubeEnv;
  readonly signal: AbortSignal;
  readonly dryRun: boolean;
  say(line: string): void;
  /** What is waited for now, for the message of a deadline that passes. */
  waitingFor: string;
}

const timeoutDefaultMs = 600_000;
const pollMs = 1000;
const retry: BackoffPolicy = { initialMs: 500, maximumMs: 10_000 };

/** Runs `work` within the limits. @throws RolloutError at the deadline, with what was waited for; the signal's reason when it aborts */
export async function runRollout<T>(
  env: KubeEnv,
  options: RolloutOptions,
  work: (rollout: Rollout) => Promise<T>,
): Promise<T> {
  const { timeoutMs = timeoutDefaultMs, onProgress = () => {}, dryRun = false } = options;
  let rollout: Rollout | undefined;
  try {
    return await withDeadline(env.clock, timeoutMs, options.signal, (signal) => {
      rollout = { env, signal, dryRun, say: onProgress, waitingFor: "" };
      return work(rollout);
    });
  } catch (error) {
    if (options.signal.aborted || !isDeadline(error)) throw error;
    const seconds = Math.round(timeoutMs / 1000);
    const what = rollout?.waitingFor ? `: ${rollout.waitingFor}` : "";
    throw new RolloutError(`not done within ${seconds} s${what}. Run the same command again to go on`, {
      cause: error,
    });
  }
}

function isDeadline(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof DeadlineError) return true;
  return false;
}

/**
 * Waits until `look` returns undefined. Any other result says what is still missing; it is reported when it changes.
 */
export async function waitUntil(
  rollout: Rollout,
  look: (signal: AbortSignal) => Promise<string | undefined>,
): Promise<void> {
  let reported = "";
  for (;;) {
    const missing = await persistently(rollout, look);
    if (missing === undefined) break;
    rollout.waitingFor = missing;
    if (missing !== reported) rollout.say(`  waiting: ${missing}`);
    reported = missing;
    await rollout.env.clock.sleep(pollMs, rollout.signal);
  }
  rollout.waitingFor = "";
}

/** Retries a call while the server is unreachable or asks to wait, until the rollout's deadline. */
export async function persistently<T>(
  rollout: Rollout,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { env, signal } = rollout;
  for (let failures = 1; ; failures++) {
    try {
      return await call(signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!mayPass(error)) throw error;
      if (failures === 2) rollout.say(`  the API server does not answer as it should: ${errorChain(error)}`);
      rollout.waitingFor ||= `the API server (${errorChain(error)})`;
      await env.clock.sleep(backoffMs(retry, failures, env.random), signal);
    }
  }
}

/** A conflict passes, too: with force, one of server-side apply is nothing but a change in between. */
function mayPass(error: unknown): boolean {
  if (error instanceof KubeTransportError || isTooManyRequests(error)) return true;
  return error instanceof KubeApiError && (error.code >= 500 || error.code === 409);
}
