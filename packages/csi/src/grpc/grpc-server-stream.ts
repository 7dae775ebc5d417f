/** The serving side of calls that are answered with a stream, over grpc-js. */
import type { DescMethodServerStreaming, DescService } from "@bufbuild/protobuf";
import type { ServerWritableStream } from "@grpc/grpc-js";
import type { RuntimeEnv } from "@longshore/runtime";
import { dispatchStream } from "../calls/stream-transport.ts";
import { statusOfFailure } from "../calls/unary-transport.ts";
import type { CsiHandlers } from "../csi-connection.ts";
import { grpcCodes } from "../errors.ts";
import type { AnyMessage } from "./grpc-service.ts";

/**
 * Sends what the handler yields, no faster than the client reads. Resolves when the handler has ended; never rejects.
 */
export async function answerStream(
  env: Pick<RuntimeEnv, "logger">,
  method: DescMethodServerStreaming,
  handlers: CsiHandlers<DescService>,
  call: ServerWritableStream<AnyMessage, AnyMessage>,
): Promise<void> {
  const cancel = new AbortController();
  call.on("cancelled", () => cancel.abort());
  try {
    for await (const answer of dispatchStream(handlers, method, call.request, cancel.signal)) {
      if (cancel.signal.aborted) break;
      if (!call.write(answer)) await drained(call, cancel.signal);
    }
    call.end();
  } catch (error) {
    if (cancel.signal.aborted) return; // The client has gone.
    const { code, message, known } = statusOfFailure(error);
    if (!known) env.logger.error(`${method.name} failed`, { error });
    call.emit("error", { code: grpcCodes.indexOf(code), details: message });
  }
}

/** Resolves when more can be written, or the caller has gone. */
function drained(call: ServerWritableStream<AnyMessage, AnyMessage>, gone: AbortSignal): Promise<void> {
  if (gone.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      call.off("drain", done);
      gone.removeEventListener("abort", done);
      resolve();
    };
    call.on("drain", done);
    gone.addEventListener("abort", done);
  });
}
