/** Exponential back-off, as a pure function of the number of failures. */
import type { Random } from "./random.ts";

/** How the delay grows. */
export interface BackoffPolicy {
  /** Delay after the first failure, in milliseconds. */
  readonly initialMs: number;
  /** The delay never exceeds this before jitter is added, in milliseconds. */
  readonly maximumMs: number;
  /** Growth from one failure to the next; default 2. */
  readonly factor?: number;
  /** Up to this share of the delay is added at random; default 0. */
  readonly jitter?: number;
}

/** The delay in milliseconds after `failures` failures in a row (at least one). */
export function backoffMs(policy: BackoffPolicy, failures: number, random?: Random): number {
  const grown = policy.initialMs * (policy.factor ?? 2) ** Math.min(failures - 1, 64);
  const base = Math.min(policy.maximumMs, grown);
  const jitter = policy.jitter ?? 0;
  if (jitter === 0 || random === undefined) return base;
  return base * (1 + (jitter * random.below(1024, "back-off jitter")) / 1024);
}
