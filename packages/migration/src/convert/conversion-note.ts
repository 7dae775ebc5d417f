/** Notes of a conversion about the objects it met. */

import type { TraceStep } from "@longshore/translation";

/** A note about an object. */
export interface ConversionNote {
  /**
   * `failed`: it could not be translated and was passed on as it is. `dropped`: it was translated, and something of it
   * that no disk depends on is not kept.
   */
  readonly kind: "failed" | "dropped" | "inline" | "explain";
  /** Kind, namespace and name, or where the object is. */
  readonly object: string;
  readonly text: string;
}

/** Receives the notes of a conversion. */
export type NoteSink = (note: ConversionNote) => void;

/** One step of an explanation as a line. */
export function stepText(step: TraceStep): string {
  const value = step.value === undefined ? "" : ` = ${JSON.stringify(step.value)}`;
  const hash = step.hashOf === undefined ? "" : `, computed from ${JSON.stringify(step.hashOf)}`;
  const move =
    step.to === "" ? `${step.from}${value} dropped` : `${step.from || "(set)"} -> ${step.to}${value}`;
  return `${move} (${step.why}${hash})`;
}
