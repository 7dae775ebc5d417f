/** Failures of the cloud and of the machine as gRPC statuses. Source: docs/behaviour/csi-spec-notes.md 8. */
import { CsiStatusError, type GrpcCode } from "@longshore/csi";
import { errorChain, HostError } from "@longshore/runtime";
import { CloudError, type CloudErrorCode } from "@longshore/volumes";

const codes: Readonly<Record<CloudErrorCode, GrpcCode>> = {
  NotFound: "NOT_FOUND",
  InUse: "FAILED_PRECONDITION",
  AlreadyExists: "ALREADY_EXISTS",
  LimitExceeded: "RESOURCE_EXHAUSTED",
  InvalidArgument: "INVALID_ARGUMENT",
  ZoneMismatch: "FAILED_PRECONDITION",
  // The outcome of a create is not decided by it, so the caller must try again with the same name.
  Throttled: "UNAVAILABLE",
  NoSpace: "RESOURCE_EXHAUSTED",
  Unavailable: "UNAVAILABLE",
  Unauthenticated: "UNAUTHENTICATED",
};

const hostCodes: Readonly<Record<string, GrpcCode>> = {
  ENOSPC: "RESOURCE_EXHAUSTED",
  EDQUOT: "RESOURCE_EXHAUSTED",
  ENAMETOOLONG: "INVALID_ARGUMENT",
  ELOOP: "INVALID_ARGUMENT",
};

/** Runs a handler; its failures become statuses. */
export async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CloudError) {
      throw new CsiStatusError(codes[error.code], error.message, { cause: error });
    }
    if (error instanceof HostError) {
      const code = hostCodes[error.code] ?? "INTERNAL";
      throw new CsiStatusError(code, errorChain(error), { cause: error });
    }
    throw error;
  }
}
