/** What the error of an expansion or a modification says about the volume. Source: docs/behaviour/sidecars.md 4. */
import { CsiCallError, type GrpcCode } from "@longshore/csi";

/** After these the driver may still be at work. */
const mayBeInProgress: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "UNAVAILABLE",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
]);

/** The request can never be fulfilled. */
const resizeIsImpossible: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "INVALID_ARGUMENT",
  "OUT_OF_RANGE",
  "NOT_FOUND",
]);

/**
 * True when the call has certainly ended and has no later effect. An error without an answer of the driver never is
 * final.
 */
export function isFinal(error: unknown): boolean {
  return error instanceof CsiCallError && error.answered && !mayBeInProgress.has(error.code);
}

/** True when the volume cannot have this size, so that only another request helps. */
export function isResizeInfeasible(error: unknown): boolean {
  return error instanceof CsiCallError && error.answered && resizeIsImpossible.has(error.code);
}

/** True when the volume cannot have these attributes, so that only another class helps. */
export function isModifyInfeasible(error: unknown): boolean {
  return error instanceof CsiCallError && error.answered && error.code === "INVALID_ARGUMENT";
}

/** True when the driver expands volumes only while they are not in use (CSI, ControllerExpandVolume errors). */
export function isInUse(error: unknown): boolean {
  return error instanceof CsiCallError && error.answered && error.code === "FAILED_PRECONDITION";
}
