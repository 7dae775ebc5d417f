/** What a failed CreateVolume means: the provisioner's own reading of gRPC codes (docs/behaviour/sidecars.md 2.3). */
import { CsiCallError, type GrpcCode } from "@longshore/csi";

/**
 * Where an attempt to create a volume stands.
 *  - `Finished`: the driver is certainly not working on it.
 *  - `Background`: it may still be; the same call must be repeated until it is resolved.
 *  - `NoChange`: the driver was not asked in this attempt.
 *  - `Reschedule`: finished, and another node may do.
 */
export type ProvisioningState = "Finished" | "Background" | "NoChange" | "Reschedule";

/** After these the driver may still be creating the volume. RESOURCE_EXHAUSTED is final here, unlike for a kubelet. */
export const createMayBeInProgress: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "UNAVAILABLE",
  "ABORTED",
]);

/** An attempt that made no volume, and where that leaves it. The text is shown to users. */
export class ProvisionError extends Error {
  override readonly name = "ProvisionError";
  readonly state: ProvisioningState;
  /** Another component handles the claim: nothing to report. */
  readonly ignored: boolean;
  constructor(
    state: ProvisioningState,
    message: string,
    options?: ErrorOptions & { readonly ignored?: boolean },
  ) {
    super(message, options);
    this.state = state;
    this.ignored = options?.ignored ?? false;
  }
}

/**
 * @param mayReschedule the volume waits for its consumer and the driver knows topology, so that another node
 * can make a difference
 */
export function stateAfterCreateError(error: unknown, mayReschedule: boolean): ProvisioningState {
  // A deadline or a lost connection says nothing of what the driver does meanwhile.
  if (!(error instanceof CsiCallError) || !error.answered) return "Background";
  if (createMayBeInProgress.has(error.code)) return "Background";
  if (error.code === "RESOURCE_EXHAUSTED" && mayReschedule) return "Reschedule";
  return "Finished";
}

/**
 * Final answers from which it follows that an earlier call with the same request has made no volume: that would have
 * been found (CSI, idempotency of CreateVolume). Others say nothing of it: another volume has the name, perhaps our own,
 * made with other parameters; the caller is not let in; the driver itself has failed.
 */
const answersAlsoForEarlierCalls: ReadonlySet<unknown> = new Set<GrpcCode>([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "OUT_OF_RANGE",
  "RESOURCE_EXHAUSTED",
  "UNIMPLEMENTED",
]);

/** The gRPC code behind a failed attempt, if a driver gave one. */
export function codeOf(error: unknown): unknown {
  return error instanceof ProvisionError
    ? (error.cause as { readonly code?: unknown } | undefined)?.code
    : undefined;
}

/**
 * Whether after this failure the driver certainly has no volume of the name.
 * @param mayExist an earlier call, of this process or of one before it, may have made one
 */
export function provesAbsence(error: unknown, mayExist: boolean): boolean {
  if (!(error instanceof ProvisionError)) return false;
  if (error.state !== "Finished" && error.state !== "Reschedule") return false;
  const code = codeOf(error);
  // Without a code it was ours to say: the volume was deleted.
  return !mayExist || code === undefined || answersAlsoForEarlierCalls.has(code);
}
