/** Calls that are answered with a stream, in process. Nothing is produced before it is asked for. */
import {
  type DescMessage,
  type DescMethodServerStreaming,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { abortable, type Clock } from "@longshore/runtime";
import { dispatchStream } from "../calls/stream-transport.ts";
import { statusOfFailure } from "../calls/unary-transport.ts";
import type { CsiCallOptions, CsiHandlers } from "../csi-connection.ts";
import { CsiCallError } from "../errors.ts";

/** Where a call goes, and what ends it besides itself. */
export interface StreamPeer {
  /** The driver's handlers; undefined when the endpoint is not served. */
  readonly served:
    | { readonly handlers: ReadonlyMap<string, CsiHandlers<DescService>>; readonly gone: AbortController }
    | undefined;
  /** Path of the socket. */
  readonly endpoint: string;
  /** The connection's end. */
  readonly closed: AbortSignal;
}

/** The answers of one call. */
export async function* inProcessStream(
  clock: Clock,
  peer: StreamPeer,
  method: DescMethodServerStreaming,
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
): AsyncGenerator<MessageShape<DescMessage>> {
  const unanswered = (code: "UNAVAILABLE" | "CANCELLED" | "DEADLINE_EXCEEDED", detail: string) =>
    new CsiCallError(method.name, code, detail, { answered: false });
  const { served, closed, endpoint } = peer;
  if (options.signal.aborted) throw unanswered("CANCELLED", "the caller gave up");
  if (closed.aborted) throw unanswered("CANCELLED", "the connection is closed");
  if (served === undefined) throw unanswered("UNAVAILABLE", `nothing listens on ${endpoint}`);

  const over = new AbortController();
  const ends = [
    {
      signal: served.gone.signal,
      end: () => over.abort(unanswered("UNAVAILABLE", "the connection was lost")),
    },
    { signal: closed, end: () => over.abort(unanswered("CANCELLED", "the connection was closed")) },
    { signal: options.signal, end: () => over.abort(unanswered("CANCELLED", "the caller gave up")) },
  ];
  for (const { signal, end } of ends) signal.addEventListener("abort", end, { once: true });
  const timer = clock.timer(options.timeoutMs, () => {
    const detail = `the stream did not end within ${options.timeoutMs} ms`;
    over.abort(unanswered("DEADLINE_EXCEEDED", detail));
  });
  const wire = fromBinary(method.input, toBinary(method.input, request));
  const answers = dispatchStream(served.handlers.get(method.parent.typeName), method, wire, over.signal);
  try {
    for (;;) {
      const next = await abortable(answers.next(), over.signal);
      if (next.done === true) return;
      yield fromBinary(method.output, toBinary(method.output, next.value));
      over.signal.throwIfAborted();
    }
  } catch (error) {
    if (over.signal.aborted) throw over.signal.reason;
    const { code, message } = statusOfFailure(error);
    throw new CsiCallError(method.name, code, message, { answered: code !== "DEADLINE_EXCEEDED" });
  } finally {
    timer.cancel();
    for (const { signal, end } of ends) signal.removeEventListener("abort", end);
    over.abort();
    // The handler may still be producing an answer, which is discarded; do not wait for its end.
    answers.return(undefined).catch(() => {});
  }
}
