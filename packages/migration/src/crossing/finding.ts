/** What a preflight finds, and what all of its parts look at. */
import { foreignText } from "@longshore/runtime";
import type { CrossingObservation } from "./crossing-observation.ts";
import type { CrossingDirection, CrossingSubject } from "./crossing-subject.ts";

/** One problem that blocks a crossing, or may delay it. */
export interface Finding {
  readonly severity: "blocker" | "warning";
  /** e.g. `Pod default/agent-x`. */
  readonly object: string;
  /** The field of the object that shows it, where it is one. */
  readonly field?: string;
  readonly reason: string;
  readonly remedy: string;
}

/** What every part of the preflight looks at. */
export interface PreflightView {
  readonly subject: CrossingSubject;
  readonly direction: CrossingDirection;
  readonly seen: CrossingObservation;
  /** Names of the nodes that have not crossed yet; what else there is need not be moved. */
  readonly toCross: ReadonlySet<string>;
}

/** The finding in one line, sanitized: it contains text from drivers and servers. */
export function findingWords({ object, field, reason, remedy }: Finding): string {
  return foreignText(`${object}${field === undefined ? "" : ` (${field})`}: ${reason}; ${remedy}`);
}
