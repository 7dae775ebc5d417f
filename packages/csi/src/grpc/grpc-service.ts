/** Turns protobuf descriptors into what grpc-js expects: paths and byte codecs. */
import {
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

/** Any message, at the level where grpc-js knows no types. */
export type AnyMessage = MessageShape<DescMessage>;

/** The longest message taken, in bytes: a ListVolumes page of a large cloud exceeds grpc's 4 MB. */
export const longestMessageBytes = 64 * 1024 * 1024;

/** The methods that CSI has: answered once, or with a stream. */
export type CsiMethod = DescMethodUnary | DescMethodServerStreaming;

const definitions = new WeakMap<CsiMethod, MethodDefinition<AnyMessage, AnyMessage>>();

/** The grpc-js definition of one method; made once. */
export function methodDefinition(method: CsiMethod): MethodDefinition<AnyMessage, AnyMessage> {
  const made = definitions.get(method) ?? definitionOf(method);
  definitions.set(method, made);
  return made;
}

function definitionOf(method: CsiMethod): MethodDefinition<AnyMessage, AnyMessage> {
  const serialize = (schema: DescMessage) => (message: AnyMessage) => Buffer.from(toBinary(schema, message));
  const deserialize = (schema: DescMessage) => (bytes: Buffer) => fromBinary(schema, bytes);
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: serialize(method.input),
    requestDeserialize: deserialize(method.input),
    responseSerialize: serialize(method.output),
    responseDeserialize: deserialize(method.output),
  };
}

/** The grpc-js definition of the methods of a service, by method name. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  const definition: Record<string, MethodDefinition<AnyMessage, AnyMessage>> = {};
  for (const method of service.methods) {
    if (method.methodKind === "unary" || method.methodKind === "server_streaming")
      definition[method.localName] = methodDefinition(method as CsiMethod);
  }
  return definition;
}
