/** The time axis of a timeline: long pauses in which nothing happens are drawn short, and marked. */

/** A pause that is drawn shorter than it was. */
export interface ShortPause {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Where a time is on the axis. */
export interface TimelineScale {
  /** Length of the axis. */
  readonly width: number;
  readonly pauses: readonly ShortPause[];
  x(ms: number): number;
}

/** Longest pause that is drawn in its whole length, in milliseconds. */
const pauseMsMax = 5_000;

/**
 * Makes the scale from 0 to `endMs`.
 * @param times when something happens, in any order
 */
export function timelineScale(times: readonly number[], endMs: number, width: number): TimelineScale {
  const points = [...new Set([0, ...times.filter((ms) => ms > 0 && ms < endMs), endMs])].sort(
    (a, b) => a - b,
  );
  const drawn = [0];
  const pauses: ShortPause[] = [];
  for (let i = 1; i < points.length; i++) {
    const [fromMs = 0, toMs = 0] = [points[i - 1], points[i]];
    if (toMs - fromMs > pauseMsMax) pauses.push({ fromMs, toMs });
    drawn.push((drawn[i - 1] ?? 0) + Math.min(toMs - fromMs, pauseMsMax));
  }
  const length = Math.max(1, drawn.at(-1) ?? 1);
  return {
    width,
    pauses,
    x(ms) {
      const within = Math.min(Math.max(ms, 0), endMs);
      let low = 0;
      for (let high = points.length - 1; low < high; ) {
        const middle = (low + high + 1) >> 1;
        if ((points[middle] ?? 0) <= within) low = middle;
        else high = middle - 1;
      }
      const from = points[low] ?? 0;
      const to = points[low + 1] ?? from + 1;
      const share = (within - from) / Math.max(1, to - from);
      const at = (drawn[low] ?? 0) + share * ((drawn[low + 1] ?? drawn[low] ?? 0) - (drawn[low] ?? 0));
      return (at / length) * width;
    },
  };
}
