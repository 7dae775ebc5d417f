/** The calls that a driver receives, seen at its socket; and services that pass every call on to a driver elsewhere. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageShape,
} from "@bufbuild/protobuf";
import { statusOfFailure } from "./calls/unary-transport.ts";
import type { CsiConnection, CsiServices } from "./csi-connection.ts";
import { CsiCallError, CsiStatusError, type GrpcCode } from "./errors.ts";
import { Controller, GroupController, Identity, Node, SnapshotMetadata } from "./gen/csi_pb.ts";

/** One call that a driver has answered. Carries no secret: ids and names only. */
export interface ServedCall {
  /** e.g. `NodePublishVolume`. */
  readonly rpc: string;
  readonly code: GrpcCode;
  /** The volume it is about: its id, or the id that the answer gave it. */
  readonly volumeId: string | undefined;
}

const descriptions = {
  identity: Identity,
  controller: Controller,
  groupController: GroupController,
  snapshotMetadata: SnapshotMetadata,
  node: Node,
};

type Handler = (request: MessageShape<DescMessage>, signal: AbortSignal) => Promise<Record<string, unknown>>;
type StreamHandler = (
  request: MessageShape<DescMessage>,
  signal: AbortSignal,
) => AsyncIterable<Record<string, unknown>>;

/** Maps each handler of a driver; undefined: this handler is not served. */
interface Mapping {
  unary(method: DescMethodUnary, handlers: Handlers, service: ServiceName): Handler | undefined;
  stream(
    method: DescMethodServerStreaming,
    handlers: Handlers,
    service: ServiceName,
  ): StreamHandler | undefined;
}

type Handlers = Record<string, unknown>;

/**
 * The same services; `onCall` is called for every call once it has its answer, before the answer is sent; for a stream,
 * before its end is sent. A stream that its caller left early counts as CANCELLED.
 */
export function observedServices(
  services: CsiServices,
  onCall: (call: ServedCall) => Promise<void> | void,
): CsiServices {
  return mapHandlers(services, {
    unary(method, handlers) {
      const handler = handlers[method.localName] as Handler | undefined;
      if (handler === undefined) return undefined;
      return async (request, signal) => {
        try {
          const answer = await handler.call(handlers, request, signal);
          await onCall({ rpc: method.name, code: "OK", volumeId: volumeIdOf(request, answer) });
          return answer;
        } catch (error) {
          await onCall({
            rpc: method.name,
            code: statusOfFailure(error).code,
            volumeId: volumeIdOf(request),
          });
          throw error;
        }
      };
    },
    stream(method, handlers) {
      const handler = handlers[method.localName] as StreamHandler | undefined;
      if (handler === undefined) return undefined;
      return async function* (request, signal) {
        let code: GrpcCode = "CANCELLED";
        try {
          yield* handler.call(handlers, request, signal);
          code = "OK";
        } catch (error) {
          code = statusOfFailure(error).code;
          throw error;
        } finally {
          await onCall({ rpc: method.name, code, volumeId: volumeIdOf(request) });
        }
      };
    },
  });
}

/**
 * Services that a driver behind `connection` answers.
 * @param timeoutMs longest that a call may take, in milliseconds; its caller's own deadline is kept besides
 */
export function forwardingServices(connection: CsiConnection, timeoutMs: number): CsiServices {
  const clients: Record<string, unknown> = {};
  for (const name of Object.keys(descriptions)) clients[name] = {};
  const callOf = <Answer>(service: ServiceName, method: DescMethodUnary | DescMethodServerStreaming) => {
    const client = connection[service] as unknown as Record<
      string,
      (request: unknown, options: unknown) => Answer
    >;
    const call = client[method.localName];
    if (call === undefined) throw new Error(`no call ${method.name} of ${method.parent.typeName}`);
    return call;
  };
  return mapHandlers(clients as unknown as CsiServices, {
    unary: (method, _, service) => async (request, signal) => {
      const call = callOf<Promise<Record<string, unknown>>>(service, method);
      try {
        return await call(request, { signal, timeoutMs });
      } catch (error) {
        throw passedOn(error);
      }
    },
    stream: (method, _, service) =>
      async function* (request, signal) {
        const call = callOf<AsyncIterable<Record<string, unknown>>>(service, method);
        try {
          yield* call(request, { signal, timeoutMs });
        } catch (error) {
          throw passedOn(error);
        }
      },
  });
}

/** The outcome of an unanswered call is unknown here too: the caller must not take it as an answer of the driver. */
function passedOn(error: unknown): unknown {
  if (!(error instanceof CsiCallError) || error.answered) return error;
  return new CsiStatusError("UNAVAILABLE", `the driver did not answer: ${error.message}`, { cause: error });
}

type ServiceName = keyof typeof descriptions;

function mapHandlers(services: CsiServices, map: Mapping): CsiServices {
  const mapped: Record<string, Record<string, Handler | StreamHandler>> = {};
  for (const [name, description] of Object.entries(descriptions) as [ServiceName, DescService][]) {
    const handlers = services[name] as Handlers | undefined;
    if (handlers === undefined) continue;
    const own: Record<string, Handler | StreamHandler> = {};
    for (const method of description.methods) {
      const handler =
        method.methodKind === "unary"
          ? map.unary(method as DescMethodUnary, handlers, name)
          : method.methodKind === "server_streaming"
            ? map.stream(method as DescMethodServerStreaming, handlers, name)
            : undefined;
      if (handler !== undefined) own[method.localName] = handler;
    }
    mapped[name] = own;
  }
  return mapped as unknown as CsiServices;
}

function volumeIdOf(request: object, answer: object = {}): string | undefined {
  const named = request as { readonly volumeId?: string; readonly sourceVolumeId?: string };
  const made = answer as { readonly volume?: { readonly volumeId?: string } };
  return named.volumeId || named.sourceVolumeId || made.volume?.volumeId || undefined;
}
