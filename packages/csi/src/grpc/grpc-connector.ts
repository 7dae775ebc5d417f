/**
 * The gRPC form of {@link CsiConnector}: grpc-js over a unix socket. A connection reconnects by
 * itself; while the driver is unreachable, calls fail at once with UNAVAILABLE and `answered: false`.
 */
import type { DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import {
  Client,
  type ClientUnaryCall,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { DeadlineError, type RuntimeEnv } from "@longshore/runtime";
import { guardedConnection, guardedUnary, RecentSecrets } from "../calls/guarded-connection.ts";
import type { StreamTransport } from "../calls/stream-transport.ts";
import { registrationOver, type UnaryTransport } from "../calls/unary-transport.ts";
import type { CsiCallOptions, CsiConnector } from "../csi-connection.ts";
import { socketPathOf } from "../endpoint.ts";
import { CsiCallError, type GrpcCode } from "../errors.ts";
import { LossListeners } from "../loss-listeners.ts";
import { callErrorOf, isOwnDeadline } from "./grpc-errors.ts";
import { type AnyMessage, longestMessageBytes, methodDefinition } from "./grpc-service.ts";
import { serverStream } from "./grpc-stream.ts";

const channelOptions = {
  // Without it the socket's path becomes `:authority`, which Go servers refuse when it holds a `%`.
  "grpc.default_authority": "localhost",
  // With grpc's own back-off a restarted driver is found again only after seconds.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1000,
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_http_proxy": 0,
  // An idle connection stays open, so that its loss is noticed: for the longest time that a timer allows.
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
  // Whether to repeat a call is the caller's decision: the driver may have done the work.
  "grpc.enable_retries": 0,
  "grpc.max_receive_message_length": longestMessageBytes,
};

/** Connects to drivers over their unix sockets. */
export function grpcConnector(env: Pick<RuntimeEnv, "clock">): CsiConnector {
  const recent = new RecentSecrets();
  const open = (endpoint: string) => {
    const client = new Client(`unix:${socketPathOf(endpoint)}`, credentials.createInsecure(), channelOptions);
    const transport: UnaryTransport = async (method, request, options) =>
      (await unaryCall(env, client, method as DescMethodUnary, request, options)) as MessageShape<
        typeof method.output
      >;
    return { client, transport };
  };
  return {
    connect(endpoint, options) {
      const { client, transport } = open(endpoint);
      const losses = new LossListeners();
      watchForLoss(client, losses);
      const transports = {
        unary: transport,
        stream: (...[method, request, call]: Parameters<StreamTransport>) =>
          serverStream(env, client, method, request, call),
      };
      const line = {
        onLost: (listener: () => void) => losses.add(listener),
        close() {
          losses.clear();
          client.close();
        },
      };
      return guardedConnection(transports, recent, line, options);
    },
    connectRegistration(socketPath) {
      const { client, transport } = open(socketPath);
      return registrationOver(guardedUnary(transport, recent), () => client.close());
    },
  };
}

/** Follows the state of the channel: from ready it goes to another only when the server has gone, or by `close`. */
function watchForLoss(client: Client, losses: LossListeners): void {
  const channel = client.getChannel();
  const look = (before: connectivityState) => {
    const state = channel.getConnectivityState(false);
    if (state === connectivityState.SHUTDOWN) return;
    if (before === connectivityState.READY && state !== before) losses.notify();
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => look(state));
  };
  look(connectivityState.IDLE);
}

function unaryCall(
  env: Pick<RuntimeEnv, "clock">,
  client: Client,
  method: DescMethodUnary,
  request: AnyMessage,
  { signal, timeoutMs }: CsiCallOptions,
): Promise<AnyMessage> {
  const unanswered = (code: GrpcCode, detail: string, cause: unknown) =>
    new CsiCallError(method.name, code, detail, { answered: false, cause });
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  return new Promise((resolve, reject) => {
    const givenUp = () => unanswered("CANCELLED", "the caller gave up", signal.reason);
    const late = () =>
      unanswered("DEADLINE_EXCEEDED", `no answer within ${timeoutMs} ms`, new DeadlineError(timeoutMs));
    if (signal.aborted) {
      reject(givenUp());
      return;
    }
    let headersCame = false;
    let call: ClientUnaryCall;
    const end = () => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
    };
    const giveUp = (error: CsiCallError) => {
      end();
      reject(error);
      call.cancel();
    };
    const onAbort = () => giveUp(givenUp());
    const timer = env.clock.timer(timeoutMs, () => giveUp(late()));
    try {
      call = withoutStack(() =>
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          new Metadata(),
          { deadline: env.clock.now().getTime() + timeoutMs },
          (error: ServiceError | null, answer?: AnyMessage) => {
            end();
            if (error === null && answer !== undefined) resolve(answer);
            else if (signal.aborted) reject(givenUp());
            // The library has a timer of its own, of which either may be first: the error is the same.
            else reject(isOwnDeadline(error) ? late() : callErrorOf(method, error, headersCame));
          },
        ),
      );
    } catch (error) {
      timer.cancel();
      reject(unanswered("UNAVAILABLE", "the call could not be made", error));
      return;
    }
    call.on("metadata", () => {
      headersCame = true;
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** grpc-js notes for each call where it was made, for its errors: ours name the call instead, and the note is a tenth of its cost. */
function withoutStack<R>(make: () => R): R {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
