/** gRPC status codes as typed errors. Each caller owns its own rule of which codes are final. */

/** The gRPC status codes by name. */
export const grpcCodes = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** A gRPC status code. */
export type GrpcCode = (typeof grpcCodes)[number];

/** A CSI call that did not end with OK. */
export class CsiCallError extends Error {
  override readonly name = "CsiCallError";
  /** The RPC, e.g. `ControllerPublishVolume`. */
  readonly rpc: string;
  readonly code: GrpcCode;
  /** The status message of the driver, without secrets and on one line (`guarded-connection.ts`), or what broke on the way. */
  readonly detail: string;
  /** False when no status of the driver came back, or one that says the deadline is over: the outcome is unknown. */
  readonly answered: boolean;
  /** Whether the status came with details, which CSI forbids ("status.details MUST be empty"). */
  readonly hasDetails: boolean;
  constructor(
    rpc: string,
    code: GrpcCode,
    detail: string,
    options: { readonly answered?: boolean; readonly hasDetails?: boolean; readonly cause?: unknown } = {},
  ) {
    super(`${rpc} failed with ${code}: ${detail}`, { cause: options.cause });
    this.rpc = rpc;
    this.code = code;
    this.detail = detail;
    this.answered = options.answered ?? true;
    this.hasDetails = options.hasDetails ?? false;
  }
}

/** What a driver's handler throws to answer with a status other than OK. */
export class CsiStatusError extends Error {
  override readonly name = "CsiStatusError";
  readonly code: GrpcCode;
  constructor(code: GrpcCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
