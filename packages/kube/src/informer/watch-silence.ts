/** Notices that a watch has fallen silent: a peer that is gone without a goodbye ends nothing. */
import type { Clock } from "@longshore/runtime";

/** A watch carried nothing for too long and was given up. */
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
