/** A connection whose calls pass through one function: for those that watch over calls without knowing their services. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CsiCallOptions, CsiConnection } from "../csi-connection.ts";
import { Controller, GroupController, Identity, Node } from "../gen/csi_pb.ts";
import { connectionOver } from "./unary-transport.ts";

/** Sends the call, or does not, and returns its answer. Fails with `CsiCallError` only. */
export type CallInterceptor = (
  method: DescMethodUnary,
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
  send: () => Promise<MessageShape<DescMessage>>,
) => Promise<MessageShape<DescMessage>>;

type Call = (
  request: MessageShape<DescMessage>,
  options: CsiCallOptions,
) => Promise<MessageShape<DescMessage>>;

/** The connection with `around` about each of its calls but the streams, which go straight through. */
export function interceptCalls(connection: CsiConnection, around: CallInterceptor): CsiConnection {
  const clients = new Map<DescService, Record<string, unknown>>([
    [Identity, connection.identity],
    [Controller, connection.controller],
    [GroupController, connection.groupController],
    [Node, connection.node],
  ]);
  return connectionOver(async (method, request, options) => {
    const call = clients.get(method.parent)?.[method.localName] as Call;
    const answer = await around(method as DescMethodUnary, request, options, async () =>
      create((method as DescMethodUnary).output, await call(request, options)),
    );
    return answer as MessageShape<typeof method.output>;
  }, connection);
}
