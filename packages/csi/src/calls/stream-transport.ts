/** What every form of connection shares of the calls that are answered with a stream, as `unary-transport.ts` has it of the others. */
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CsiCallOptions, CsiClient, CsiHandlers } from "../csi-connection.ts";
import { SnapshotMetadata } from "../gen/csi_pb.ts";
import { handlerOf } from "./unary-transport.ts";

/** Makes one streaming call, when it is first asked for an answer. Fails with `CsiCallError` only. */
export type StreamTransport = (
  method: DescMethodServerStreaming,
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
) => AsyncIterable<MessageShape<DescMessage>>;

/** The calls of the one service of CSI that streams, over a transport. */
export function snapshotMetadataOver(transport: StreamTransport): CsiClient<typeof SnapshotMetadata> {
  const client: Record<string, unknown> = {};
  for (const method of SnapshotMetadata.methods as readonly DescMethodServerStreaming[]) {
    client[method.localName] = (request: MessageInitShape<DescMessage>, options: CsiCallOptions) =>
      transport(method, create(method.input, request), options);
  }
  return client as CsiClient<typeof SnapshotMetadata>;
}

/** The answers of the handler of `method`. */
export async function* dispatchStream(
  handlers: CsiHandlers<DescService> | undefined,
  method: DescMethodServerStreaming,
  request: MessageShape<DescMessage>,
  signal: AbortSignal,
): AsyncGenerator<MessageShape<DescMessage>> {
  type Handler = (
    request: MessageShape<DescMessage>,
    signal: AbortSignal,
  ) => AsyncIterable<MessageInitShape<DescMessage>>;
  const handler = handlerOf<Handler>(handlers, method);
  for await (const answer of handler.call(handlers, request, signal)) yield create(method.output, answer);
}
