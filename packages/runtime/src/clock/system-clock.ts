/** The real form of the {@link Clock} seam: the machine's clocks and Node's timers. */
import { type Clock, deadlineOn, sleepOn, type Timer } from "./clock.ts";

/** Node's longest timer; a longer delay is cut into pieces of this size. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

class SystemClock implements Clock {
  now(): Date {
    return new Date();
  }

  monotonicMs(): number {
    return performance.now();
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  timer(ms: number, fire: () => void): Timer {
    let remaining = Math.max(0, ms);
    let handle: ReturnType<typeof setTimeout>;
    const arm = () => {
      const piece = Math.min(remaining, LONGEST_TIMEOUT_MS);
      remaining -= piece;
      handle = setTimeout(remaining > 0 ? arm : fire, piece);
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  }

  deadline(ms: number, parent: AbortSignal): AbortSignal {
    return deadlineOn(this, ms, parent);
  }
}

/** The machine's clock. */
export const systemClock: Clock = new SystemClock();

/** A timer that does not keep the process alive: for what may be left undone when there is nothing else to do. */
export function passingTimer(ms: number, fire: () => void): Timer {
  const handle = setTimeout(fire, ms);
  handle.unref();
  return { cancel: () => clearTimeout(handle) };
}
