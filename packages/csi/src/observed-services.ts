/** What a driver is asked, seen at its door; and services that pass every call on to a driver elsewhere. */
import type { DescMessage, DescMethodUnary, DescService, MessageShape } from "@bufbuild/protobuf";
import type { CsiConnection, CsiServices } from "./connection.ts";
import { CsiCallError, CsiStatusError, type GrpcCode } from "./errors.ts";
import { Controller, GroupController, Identity, Node } from "./gen/csi_pb.ts";
import { statusOfFailure } from "./unary.ts";

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
  node: Node,
};

type Handler = (request: MessageShape<DescMessage>, signal: AbortSignal) => Promise<Record<string, unknown>>;

/** The same services; `onCall` is told of every call once it has been answered, before the answer leaves. */
export function observedServices(
  services: CsiServices,
  onCall: (call: ServedCall) => Promise<void> | void,
): CsiServices {
  return mapHandlers(services, (method, handlers) => {
    const handler = handlers?.[method.localName] as Handler | undefined;
    if (handler === undefined) return undefined;
    return async (request, signal) => {
      try {
        const answer = await handler.call(handlers, request, signal);
        await onCall({ rpc: method.name, code: "OK", volumeId: volumeIdOf(request, answer) });
        return answer;
      } catch (error) {
        await onCall({ rpc: method.name, code: statusOfFailure(error).code, volumeId: volumeIdOf(request) });
        throw error;
      }
    };
  });
}

/**
 * Services that a driver behind `connection` answers.
 * @param timeoutMs longest that a call may take, in milliseconds; its caller's own deadline is kept besides
 */
export function forwardingServices(connection: CsiConnection, timeoutMs: number): CsiServices {
  const clients: Record<string, unknown> = {};
  for (const name of Object.keys(descriptions)) clients[name] = {};
  return mapHandlers(clients as unknown as CsiServices, (method, _, service) => {
    const client = connection[service] as unknown as Record<
      string,
      (request: unknown, options: unknown) => Promise<Record<string, unknown>>
    >;
    return async (request, signal) => {
      const call = client[method.localName];
      if (call === undefined) throw new Error(`no call ${method.name} of ${method.parent.typeName}`);
      try {
        return await call(request, { signal, timeoutMs });
      } catch (error) {
        // What became of the call is not known here either: the caller must not take it for an answer of the driver.
        if (!(error instanceof CsiCallError) || error.answered) throw error;
        throw new CsiStatusError("UNAVAILABLE", `the driver did not answer: ${error.message}`, {
          cause: error,
        });
      }
    };
  });
}

type ServiceName = keyof typeof descriptions;

function mapHandlers(
  services: CsiServices,
  map: (
    method: DescMethodUnary,
    handlers: Record<string, unknown> | undefined,
    service: ServiceName,
  ) => Handler | undefined,
): CsiServices {
  const mapped: Record<string, Record<string, Handler>> = {};
  for (const [name, description] of Object.entries(descriptions) as [ServiceName, DescService][]) {
    const handlers = services[name] as Record<string, unknown> | undefined;
    if (handlers === undefined) continue;
    const own: Record<string, Handler> = {};
    for (const method of description.methods) {
      if (method.methodKind !== "unary") continue;
      const handler = map(method as DescMethodUnary, handlers, name);
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
