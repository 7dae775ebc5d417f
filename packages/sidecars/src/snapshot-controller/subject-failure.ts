/** How a failure of a pass over a VolumeSnapshot or a VolumeGroupSnapshot is reported. Pure. */
import { errorChain } from "@longshore/runtime";

/** Something is not as it is to be. The text is shown to users. */
export class SnapshotFailedError extends Error {
  override readonly name = "SnapshotFailedError";
}

/** How a failed step is reported. */
export interface FailedStep {
  readonly reason: string;
  readonly what: string;
  /** The snapshot is not usable in this state. */
  readonly notReady: boolean;
  /** The status does not show it. */
  readonly isEventOnly?: true;
}

/** What is wrong with an object. */
export interface FailureReport {
  readonly reason: string;
  readonly message: string;
  readonly notReady: boolean;
  readonly isEventOnly?: true;
}

/** A failure, and how far it is reported. */
export interface SubjectFailure {
  readonly error: unknown;
  /** Undefined: it is only retried. */
  readonly report: FailureReport | undefined;
  readonly isReported?: true;
  readonly isStored?: true;
}

/** Steps after a failure. */
export type SubjectFailureStep =
  | { readonly step: "reportFailure"; readonly report: FailureReport }
  | { readonly step: "storeFailure"; readonly report: FailureReport }
  /** With the delays of the queue. */
  | { readonly step: "retry"; readonly error: unknown };

/**
 * The next step. What stays the same is reported once.
 * @param shownMessage the failure that the object's status shows
 */
export function decideSubjectFailure(
  shownMessage: string | undefined,
  { error, report, isReported, isStored }: SubjectFailure,
): SubjectFailureStep {
  const retry = { step: "retry", error } as const;
  if (report === undefined) return retry;
  const isInStatus = report.isEventOnly !== true;
  if (!isReported && isInStatus && shownMessage === report.message) return retry;
  if (!isReported) return { step: "reportFailure", report };
  return isInStatus && !isStored ? { step: "storeFailure", report } : retry;
}

/** The report of an error that a step ended with. */
export function reportOf({ what, ...failed }: FailedStep, error: unknown): FailureReport {
  return { ...failed, message: `${what} ${errorChain(error)}` };
}
