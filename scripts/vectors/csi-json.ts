/** CSI messages as the vectors write them: protobuf's JSON mapping. */
import { create, type DescMessage, type JsonValue, type MessageInitShape, toJson } from "@longshore/csi";

/** A message, made from its init form, as JSON. */
export function messageToJson<S extends DescMessage>(schema: S, init: MessageInitShape<S>): JsonValue {
  return toJson(schema, create(schema, init));
}
