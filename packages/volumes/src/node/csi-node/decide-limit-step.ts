/**
 * When a driver is asked again how many volumes this node can have. Source: docs/behaviour/csi-plugin.md 16.
 *
 *     registered, with a period? ── no ──► forget
 *        └─ yes ─► schedule ─► wait ─► ask, once in each period
 */

/** Shortest period that the API permits, in milliseconds. */
const periodMinMs = 10_000;

/** One driver as a pass sees it. */
export interface ObservedLimit {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  /** The socket of the registered driver; undefined: it is not registered. */
  readonly endpoint: string | undefined;
  /** `nodeAllocatableUpdatePeriodSeconds` of its CSIDriver; undefined: it is asked at its registration alone. */
  readonly periodSeconds: number | undefined;
  /** When it is asked next, in monotonic milliseconds; undefined: not scheduled yet. */
  readonly nextMs: number | undefined;
}

/** What comes next. */
export type LimitStep =
  | { readonly step: "forget" }
  | { readonly step: "schedule"; readonly atMs: number }
  | { readonly step: "wait"; readonly ms: number }
  | { readonly step: "ask"; readonly endpoint: string; readonly againAtMs: number };

/** Decides for a driver; pure. */
export function decideLimitStep({ nowMs, endpoint, periodSeconds, nextMs }: ObservedLimit): LimitStep {
  if (endpoint === undefined || periodSeconds === undefined) return { step: "forget" };
  const againAtMs = nowMs + Math.max(periodMinMs, 1000 * periodSeconds);
  // Its registration has just asked it, or the period was shortened.
  if (nextMs === undefined || nextMs > againAtMs) return { step: "schedule", atMs: againAtMs };
  return nowMs < nextMs ? { step: "wait", ms: nextMs - nowMs } : { step: "ask", endpoint, againAtMs };
}
