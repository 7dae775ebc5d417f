/** What every simulation of a seed takes and gives, whichever world it plays. */
import type { TraceEvent } from "./trace.ts";

/** One seed of a world. */
export interface SeedOptions {
  readonly seed: number;
  /** The names of the only faults that happen, as {@link SeedResult.struck} has them; left out: all that are drawn. */
  readonly only?: ReadonlySet<string>;
  /** Called for every event of the trace. */
  readonly onTrace?: (event: TraceEvent) => void;
}

/** How it went. */
export interface SeedResult {
  readonly seed: number;
  /** Empty: the contract held. */
  readonly violations: readonly string[];
  /** The names of the faults, crashes and operations that happened, in order. */
  readonly struck: readonly string[];
  /** Calls at the seams, each a step at which the contract was checked. */
  readonly steps: number;
  /** Virtual milliseconds. */
  readonly elapsedMs: number;
  /** A sum over the trace; equal for equal runs. */
  readonly traceHash: string;
}
