/**
 * The gRPC form of {@link CsiConnector}: grpc-js over a unix socket. A connection reconnects by
 * itself; while the driver is away, calls fail at once with UNAVAILABLE and `answered: false`.
 */
import type { DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Client, connectivityState, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { DeadlineError, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import type { CsiCallOptions, CsiConnector } from "./connection.ts";
import { socketPathOf } from "./endpoint.ts";
import { CsiCallError, type GrpcCode } from "./errors.ts";
import { callErrorOf } from "./grpc-errors.ts";
import { type AnyMessage, longestMessageBytes, methodDefinition } from "./grpc-service.ts";
import { serverStream } from "./grpc-stream.ts";
import { LossListeners } from "./loss-listeners.ts";
import { snapshotMetadataOver } from "./streams.ts";
import { connectionOver, registrationOver, type UnaryTransport } from "./unary.ts";

const channelOptions = {
  // Without it the socket's path becomes `:authority`, which Go servers refuse when it holds a `%`.
  "grpc.default_authority": "localhost",
  // With grpc's own back-off a restarted driver is found again only after seconds.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1000,
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_http_proxy": 0,
  // A connection that nobody uses is kept, so that its loss is noticed: for the longest time a timer can be set to.
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
  "grpc.enable_retries": 0,
  "grpc.max_receive_message_length": longestMessageBytes,
};

/** Connects to drivers over their unix sockets. */
export function grpcConnector(env: Pick<RuntimeEnv, "clock">): CsiConnector {
  const open = (endpoint: string) => {
    const client = new Client(`unix:${socketPathOf(endpoint)}`, credentials.createInsecure(), channelOptions);
    const transport: UnaryTransport = async (method, request, options) =>
      (await unaryCall(env, client, method as DescMethodUnary, request, options)) as MessageShape<
        typeof method.output
      >;
    return { client, transport };
  };
  return {
    connect(endpoint) {
      const { client, transport } = open(endpoint);
      const losses = new LossListeners();
      tellOfLoss(client, losses);
      return connectionOver(transport, {
        snapshotMetadata: snapshotMetadataOver((method, request, options) =>
          serverStream(env, client, method, request, options),
        ),
        onLost: (listener) => losses.add(listener),
        close() {
          losses.clear();
          client.close();
        },
      });
    },
    connectRegistration(socketPath) {
      const { client, transport } = open(socketPath);
      return registrationOver(transport, () => client.close());
    },
  };
}

/** Follows the state of the channel: from ready it goes to another only when the server has gone, or by `close`. */
function tellOfLoss(client: Client, losses: LossListeners): void {
  const channel = client.getChannel();
  const look = (before: connectivityState) => {
    const state = channel.getConnectivityState(false);
    if (state === connectivityState.SHUTDOWN) return;
    if (before === connectivityState.READY && state !== before) losses.tell();
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => look(state));
  };
  look(connectivityState.IDLE);
}

async function unaryCall(
  env: Pick<RuntimeEnv, "clock">,
  client: Client,
  method: DescMethodUnary,
  request: AnyMessage,
  options: CsiCallOptions,
): Promise<AnyMessage> {
  const unanswered = (code: GrpcCode, detail: string, cause: unknown) =>
    new CsiCallError(method.name, code, detail, { answered: false, cause });
  try {
    return await withDeadline(env.clock, options.timeoutMs, options.signal, (signal) =>
      callUntil(client, method, request, env.clock.now().getTime() + options.timeoutMs, signal),
    );
  } catch (error) {
    if (options.signal.aborted) throw unanswered("CANCELLED", "the caller gave up", error);
    if (error instanceof DeadlineError) {
      throw unanswered("DEADLINE_EXCEEDED", `no answer within ${options.timeoutMs} ms`, error);
    }
    if (error instanceof CsiCallError) throw error;
    throw unanswered("UNAVAILABLE", "the call could not be made", error);
  }
}

/** One call; rejects with the signal's reason when that aborts first. */
function callUntil(
  client: Client,
  method: DescMethodUnary,
  request: AnyMessage,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<AnyMessage> {
  const definition = methodDefinition(method);
  return new Promise((resolve, reject) => {
    let headersCame = false;
    const onAbort = () => {
      call.cancel();
      reject(signal.reason);
    };
    const call = client.makeUnaryRequest(
      definition.path,
      definition.requestSerialize,
      definition.responseDeserialize,
      request,
      new Metadata(),
      { deadline: deadlineMs },
      (error: ServiceError | null, answer?: AnyMessage) => {
        signal.removeEventListener("abort", onAbort);
        if (error === null && answer !== undefined) resolve(answer);
        else reject(callErrorOf(method, error, headersCame));
      },
    );
    call.on("metadata", () => {
      headersCame = true;
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
