/**
 * A crossing outlives its API server: while that is away, or says that it cannot serve now, the
 * step under way is begun again after a pause. Steps are made for that (see `crossing.ts`).
 */
import { KubeApiError, KubeTransportError } from "@longshore/kube";
import { backoffMs, type Clock, errorChain } from "@longshore/runtime";

/** How long, and who is told. */
export interface Patience {
  /** The failure is thrown once it has lasted so long, in milliseconds. */
  readonly withinMs: number;
  /** Told before every pause what is waited for. */
  readonly onWaiting: (what: string) => void;
}

const pause = { initialMs: 100, maximumMs: 5000 };

/** True when the same call may succeed later: no usable answer came, or the server could not serve now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof KubeTransportError) return true;
  return error instanceof KubeApiError && (error.code === 429 || error.code >= 500);
}

/** Does the work, again after each transient failure. It must be safe to begin anew. @throws what the work throws */
export async function patiently<T>(
  clock: Clock,
  patience: Patience,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const untilMs = clock.monotonicMs() + patience.withinMs;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isTransient(error) || clock.monotonicMs() > untilMs) throw error;
      patience.onWaiting(`the API server to answer (${errorChain(error)})`);
    }
    await clock.sleep(backoffMs(pause, failures), signal);
  }
}
