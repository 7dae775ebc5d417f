/** Detects a silent watch: a half-open connection does not end by itself. */
import type { Clock } from "@longshore/runtime";

/** A watch carried nothing for too long and was closed. */
class WatchIdleError extends Error {
  override readonly name = "WatchIdleError";
  constructor(ms: number) {
    super(`the watch carried neither event nor bookmark for ${ms} ms`);
  }
}

/** Aborts `stop` once nothing was heard for `ms`; one timer, not one an event. */
export function watchSilence(
  clock: Clock,
  ms: number,
  heardMs: () => number,
  stop: AbortController,
): { cancel(): void } {
  let timer = clock.timer(ms, check);
  function check(): void {
    const leftMs = heardMs() + ms - clock.monotonicMs();
    if (leftMs > 0) timer = clock.timer(leftMs, check);
    else stop.abort(new WatchIdleError(ms));
  }
  return { cancel: () => timer.cancel() };
}
