/**
 * What every form of connection shares: a transport is one function that makes a unary call, and
 * the typed clients are built over it from the service descriptors.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type {
  CsiCallOptions,
  CsiClient,
  CsiConnection,
  CsiHandlers,
  CsiServices,
  PluginRegistrationClient,
  PluginRegistrationHandlers,
} from "../csi-connection.ts";
import { CsiCallError, CsiStatusError, type GrpcCode } from "../errors.ts";
import { Controller, GroupController, Identity, Node, SnapshotMetadata } from "../gen/csi_pb.ts";
import { Registration } from "../gen/pluginregistration_pb.ts";

/** Makes one unary call. Fails with {@link CsiCallError} only. */
export type UnaryTransport = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
  options: CsiCallOptions,
) => Promise<MessageShape<O>>;

/** The typed calls of `service` over a transport. Streaming methods are left out. */
export function clientOver<S extends DescService>(service: S, transport: UnaryTransport): CsiClient<S> {
  const client: Record<string, unknown> = {};
  for (const method of service.methods) {
    if (method.methodKind !== "unary") continue;
    const unary = method as DescMethodUnary;
    client[method.localName] = (request: MessageInitShape<DescMessage>, options: CsiCallOptions) =>
      transport(unary, create(unary.input, request), options);
  }
  return client as CsiClient<S>;
}

/** A connection whose unary calls all go through `transport`. */
export function connectionOver(
  transport: UnaryTransport,
  line: Pick<CsiConnection, "snapshotMetadata" | "onLost" | "close">,
): CsiConnection {
  return {
    identity: clientOver(Identity, transport),
    controller: clientOver(Controller, transport),
    groupController: clientOver(GroupController, transport),
    snapshotMetadata: line.snapshotMetadata,
    node: clientOver(Node, transport),
    onLost: (listener) => line.onLost(listener),
    close: () => line.close(),
  };
}

/** The registration client over a transport. */
export function registrationOver(transport: UnaryTransport, close: () => void): PluginRegistrationClient {
  const client = clientOver(Registration, transport);
  return {
    getInfo: (options) => client.getInfo({}, options),
    async notifyRegistrationStatus(status, options) {
      await client.notifyRegistrationStatus(status, options);
    },
    close,
  };
}

/**
 * The handler of `method`, of the type that its kind asks for; a missing one answers UNIMPLEMENTED
 * (docs/behaviour/csi-spec-notes.md 1, unsupported RPC).
 */
export function handlerOf<H>(
  handlers: CsiHandlers<DescService> | undefined,
  { localName, name }: Pick<DescMethod, "localName" | "name">,
): H {
  const handler = (handlers as Record<string, unknown> | undefined)?.[localName];
  if (handler === undefined) {
    throw new CsiStatusError("UNIMPLEMENTED", `${name} is not implemented by this driver`);
  }
  return handler as H;
}

/** Calls the handler of `method`. */
export async function dispatch(
  handlers: CsiHandlers<DescService> | undefined,
  method: DescMethodUnary,
  request: MessageShape<DescMessage>,
  signal: AbortSignal,
): Promise<MessageShape<DescMessage>> {
  type Handler = (
    request: MessageShape<DescMessage>,
    signal: AbortSignal,
  ) => Promise<MessageInitShape<DescMessage>>;
  const handler = handlerOf<Handler>(handlers, method);
  return create(method.output, await handler.call(handlers, request, signal));
}

/** The status that a handler's failure is answered with; what is not a status (`known`) leaks nothing. */
export function statusOfFailure(error: unknown): {
  readonly code: GrpcCode;
  readonly message: string;
  readonly known: boolean;
} {
  if (error instanceof CsiStatusError) return { code: error.code, message: error.message, known: true };
  // A driver that forwards a call may pass on what it was answered.
  if (error instanceof CsiCallError && error.answered) {
    return { code: error.code, message: error.detail, known: true };
  }
  return { code: "INTERNAL", message: "internal error of the driver; its log has the details", known: false };
}

/** The handlers of a driver by the full name of their service. */
export function handlersOf(services: CsiServices): ReadonlyMap<string, CsiHandlers<DescService>> {
  const map = new Map<string, CsiHandlers<DescService>>([[Identity.typeName, services.identity]]);
  if (services.controller !== undefined) map.set(Controller.typeName, services.controller);
  if (services.groupController !== undefined) map.set(GroupController.typeName, services.groupController);
  if (services.snapshotMetadata !== undefined) map.set(SnapshotMetadata.typeName, services.snapshotMetadata);
  if (services.node !== undefined) map.set(Node.typeName, services.node);
  return map;
}

/** The handlers of a registrar, likewise. */
export function registrationHandlersOf(
  handlers: PluginRegistrationHandlers,
): ReadonlyMap<string, CsiHandlers<DescService>> {
  const service: CsiHandlers<typeof Registration> = {
    async getInfo() {
      const info = await handlers.getInfo();
      return { ...info, supportedVersions: [...info.supportedVersions] };
    },
    async notifyRegistrationStatus(status) {
      await handlers.notifyRegistrationStatus(status);
      return {};
    },
  };
  return new Map([[Registration.typeName, service]]);
}
