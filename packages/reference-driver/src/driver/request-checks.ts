/** Handlers that see valid requests only, and whose failures are statuses. */
import { checkRequest, type DescMessage, type MessageShape, type RequestLimits } from "@longshore/csi";
import { answering } from "./statuses.ts";

type Handler<I extends DescMessage, O> = (request: MessageShape<I>, signal: AbortSignal) => Promise<O>;

/**
 * Makes a handler out of what it does with a valid request: it answers INVALID_ARGUMENT when one of the `required`
 * fields (names of the protocol) is empty or any field is too large or negative, and turns failures of cloud and
 * machine into statuses.
 */
export type RequestChecks = <I extends DescMessage, O>(
  schema: I,
  required: readonly string[],
  handler: Handler<I, O>,
) => Handler<I, O>;

/** Checks for one service. */
export function requestChecks(limits: RequestLimits): RequestChecks {
  return (schema, required, handler) => (request, signal) =>
    answering(async () => {
      checkRequest(schema, request, required, limits);
      return handler(request, signal);
    });
}
