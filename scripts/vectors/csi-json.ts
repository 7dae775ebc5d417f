/** CSI messages as the vectors write them: protobuf's JSON mapping. */
import { create, type DescMessage, fromJson, type JsonValue, type MessageInitShape, type MessageShape, toJson } from "@longshore/csi";

/** A message, made from its init form, as JSON. */
export function messageToJson<S extends DescMessage>(schema: S, init: MessageInitShape<S>): JsonValue {
  return toJson(schema, create(schema, init));
}

/** A message read from its JSON. */
export function messageFromJson<S extends DescMessage>(schema: S, json: JsonValue): MessageShape<S> {
  return fromJson(schema, json);
}
