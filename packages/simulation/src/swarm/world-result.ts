/** What a simulated world of the swarm gives. */
import type { SwarmPlan } from "./swarm-plan.ts";

/** How it went. */
export interface WorldResult {
  readonly seed: number;
  readonly plan: SwarmPlan;
  /** Empty: the contract held. */
  readonly violations: readonly string[];
  /** The names of the faults and operations that happened, in order. */
  readonly struck: readonly string[];
  /** How often each kind of fault and operation happened. */
  readonly counters: ReadonlyMap<string, number>;
  /** Calls at the seams. */
  readonly steps: number;
  /** Records that were written and acknowledged. */
  readonly acknowledgedWrites: number;
  /** Virtual milliseconds. */
  readonly elapsedMs: number;
  /** A sum over the trace; equal for equal runs. */
  readonly traceHash: string;
}
