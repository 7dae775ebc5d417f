/**
 * The trace of a translation: one step for each field, emitted by the very code that translates, so
 * that an explanation cannot drift from what is done. Without a trace the calls cost one comparison.
 */

/** One field that a translation read, wrote, moved or dropped. */
export interface TraceStep {
  /** Path of the field in the input; "" when the value comes from the driver's own rules. */
  readonly from: string;
  /** Path of the field in the output; "" when the value was dropped. */
  readonly to: string;
  /** The value that was written; absent when one was dropped. */
  readonly value?: string | number | boolean | readonly string[] | undefined;
  /** The rule, in one phrase. */
  readonly why: string;
  /** The exact text that a hash in the value was computed from. */
  readonly hashOf?: string | undefined;
}

/** Receives the steps of one translation, in order. */
export type Trace = (step: TraceStep) => void;
