/** The machine's clock that also notes which timers have run to their end: what waits for time, and not for an event. */
import { type Clock, systemClock } from "@longshore/runtime";

/** A clock with notes. */
export interface NotingClock extends Clock {
  /** Notes from here on; off at first, since the notes cost time. */
  note(on: boolean): void;
  /** How many timers ended by time, by their length and by who set them. */
  ended(): ReadonlyMap<string, number>;
}

/** Makes one. */
export function notingClock(): NotingClock {
  const counts = new Map<string, number>();
  let isOn = false;
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs(),
    async sleep(ms, signal) {
      const name = isOn ? nameOf("sleep", ms) : undefined;
      await systemClock.sleep(ms, signal);
      if (name !== undefined && isOn) count(name);
    },
    timer(ms, fire) {
      const name = isOn ? nameOf("timer", ms) : undefined;
      return systemClock.timer(ms, () => {
        if (name !== undefined && isOn) count(name);
        fire();
      });
    },
    deadline: (ms, parent) => systemClock.deadline(ms, parent),
    note(on) {
      isOn = on;
    },
    ended: () => counts,
  };
}

/** The wait, and the functions that led to it, innermost first. */
function nameOf(kind: string, ms: number): string {
  const frames = (new Error().stack ?? "").split("\n").slice(3, 8);
  const names = frames.map((frame) => /at (?:async )?([^(]+) \(/.exec(frame)?.[1] ?? "a function");
  return `${kind} of ${Math.round(ms)} ms: ${names.join(" < ")}`;
}
