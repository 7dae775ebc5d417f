/** Calls that are answered with a stream, over grpc-js. */
import type { DescMethodServerStreaming } from "@bufbuild/protobuf";
import { type Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { RuntimeEnv } from "@longshore/runtime";
import type { CsiCallOptions } from "../csi-connection.ts";
import { CsiCallError, type GrpcCode } from "../errors.ts";
import { callErrorOf, isOwnDeadline } from "./grpc-errors.ts";
import { type AnyMessage, methodDefinition } from "./grpc-service.ts";

/**
 * The answers of one call. The call starts when the first answer is requested; it is cancelled when the consumer stops
 * early.
 */
export async function* serverStream(
  env: Pick<RuntimeEnv, "clock">,
  client: Client,
  method: DescMethodServerStreaming,
  request: AnyMessage,
  { signal, timeoutMs }: CsiCallOptions,
): AsyncGenerator<AnyMessage> {
  const unanswered = (code: GrpcCode, detail: string, cause?: unknown) =>
    new CsiCallError(method.name, code, detail, { answered: false, cause });
  if (signal.aborted) throw unanswered("CANCELLED", "the caller gave up", signal.reason);
  const call = opened(client, method, request, env.clock.now().getTime() + timeoutMs, unanswered);
  let headersCame = false;
  let givenUp: CsiCallError | undefined;
  const giveUp = (error: CsiCallError) => {
    givenUp ??= error;
    call.cancel();
  };
  const onAbort = () => giveUp(unanswered("CANCELLED", "the caller gave up", signal.reason));
  signal.addEventListener("abort", onAbort, { once: true });
  const late = () => unanswered("DEADLINE_EXCEEDED", `the stream did not end within ${timeoutMs} ms`);
  const timer = env.clock.timer(timeoutMs, () => giveUp(late()));
  call.on("metadata", () => {
    headersCame = true;
  });
  // A cancelled call emits an error after the other listeners are gone; without one here it would be uncaught.
  call.on("error", () => {});
  try {
    for await (const answer of call) {
      if (givenUp !== undefined) break;
      yield answer as AnyMessage;
    }
  } catch (error) {
    const failure = error as ServiceError;
    throw givenUp ?? (isOwnDeadline(failure) ? late() : callErrorOf(method, failure, headersCame));
  } finally {
    signal.removeEventListener("abort", onAbort);
    timer.cancel();
    call.cancel();
  }
  if (givenUp !== undefined) throw givenUp;
}

function opened(
  client: Client,
  method: DescMethodServerStreaming,
  request: AnyMessage,
  deadline: number,
  unanswered: (code: GrpcCode, detail: string, cause: unknown) => CsiCallError,
) {
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  try {
    return client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      new Metadata(),
      { deadline },
    );
  } catch (error) {
    throw unanswered("UNAVAILABLE", "the call could not be made", error);
  }
}
