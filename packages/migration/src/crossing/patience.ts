/**
 * A crossing survives outages of the API server: while it is unreachable, or answers that it cannot serve now,
 * the current step starts again after a pause. Steps are idempotent for that reason (see `crossing.ts`).
 */
import { KubeApiError, KubeTransportError } from "@longshore/kube";
import { backoffMs, type Clock } from "@longshore/runtime";
import { apiServerWait } from "./waits.ts";
import type { OnWaiting } from "./watch-step.ts";

const pause = { initialMs: 100, maximumMs: 5000 };

/** True when the same call may succeed later: no usable answer came, or the server could not serve now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof KubeTransportError) return true;
  return error instanceof KubeApiError && (error.code === 429 || error.code >= 500);
}

/**
 * Does the work, again after each transient failure, until `signal` aborts. It must be safe to begin again.
 * @throws what the work throws
 */
export async function patiently<T>(
  clock: Clock,
  onWaiting: OnWaiting,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      onWaiting(apiServerWait(error));
    }
    await clock.sleep(backoffMs(pause, failures), signal);
  }
}
