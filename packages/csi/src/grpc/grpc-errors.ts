/** What a call over gRPC failed with, typed. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { CsiCallError, type GrpcCode, grpcCodes } from "../errors.ts";

/** Codes that grpc-js sets itself when no status came from the server. */
const localCodes: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "CANCELLED",
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "INTERNAL",
  "UNAVAILABLE",
]);

/**
 * The typed form of a grpc-js failure. grpc-js does not say whether a status came from the server
 * or from itself. A server that fails a unary call answers with headers alone, and those
 * carry a content type, which a status made up locally never has. A status that says the deadline is over
 * is no answer even then: the server knows the caller's deadline, and its library ends the call for the driver.
 */
export function callErrorOf(
  method: Pick<DescMethod, "name">,
  error: ServiceError | null,
  headersCame: boolean,
): CsiCallError {
  if (error === null)
    return new CsiCallError(method.name, "INTERNAL", "no answer and no status", { answered: false });
  const code = grpcCodes[error.code] ?? "UNKNOWN";
  const fromServer = error.metadata.get("content-type").length > 0 || (headersCame && !localCodes.has(code));
  const answered = fromServer && code !== "DEADLINE_EXCEEDED";
  const hasDetails = error.metadata.get("grpc-status-details-bin").some((details) => details.length > 0);
  return new CsiCallError(method.name, code, error.details, { answered, hasDetails });
}

/** Whether grpc-js itself has ended the call since its time is over: no status came from the server. */
export function isOwnDeadline(error: ServiceError | null): boolean {
  return (
    error !== null &&
    grpcCodes[error.code] === "DEADLINE_EXCEEDED" &&
    error.metadata.get("content-type").length === 0
  );
}
