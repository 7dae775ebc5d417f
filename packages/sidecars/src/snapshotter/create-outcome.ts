/** What a failed CreateSnapshot or CreateVolumeGroupSnapshot means: the snapshotter's own reading of gRPC codes. */
import { CsiCallError, type GrpcCode } from "@longshore/csi";

/** After these the driver may still be at work (isCSIFinalError of the reference). RESOURCE_EXHAUSTED is one of them here. */
const mayBeInProgress: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "UNAVAILABLE",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
]);

/** True once the driver surely does not make the snapshot. An error without an answer of the driver proves nothing. */
export function isFinalCreateError(error: unknown): boolean {
  return error instanceof CsiCallError && error.answered && !mayBeInProgress.has(error.code);
}
