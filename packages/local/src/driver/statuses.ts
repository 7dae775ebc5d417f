/** Failures of the cloud and of the machine as gRPC statuses. Source: csi-spec-notes.md §8. */
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
      const code = error.code === "ENOSPC" ? "RESOURCE_EXHAUSTED" : "INTERNAL";
      throw new CsiStatusError(code, errorChain(error), { cause: error });
    }
    throw error;
  }
}

/** @throws CsiStatusError INVALID_ARGUMENT when a required field is empty */
export function required(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    const isEmpty = value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
    if (isEmpty) throw new CsiStatusError("INVALID_ARGUMENT", `${name} is required`);
  }
}
