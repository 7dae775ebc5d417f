/** `GET /openapi/v2`: the document in JSON or in protobuf, made when first asked for. */
import type { KindTable } from "../registry/kind-table.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { openApiDocument } from "./openapi-document.ts";
import { openApiProtobuf } from "./openapi-protobuf.ts";

/** What the reference answers: the real name of the type has an `@`, which newer clients cannot parse. */
const protobufType = "application/octet-stream";

interface Forms {
  readonly json: string;
  readonly protobuf: Uint8Array;
}

const made = new WeakMap<KindTable, Forms>();

/** The document in the form that `accept` asks for. */
export function openApiAnswer(
  kinds: KindTable,
  version: EmulatedVersion,
  accept: string | undefined,
): { readonly body: string | Uint8Array; readonly type: string } {
  let forms = made.get(kinds);
  if (forms === undefined) {
    const document = openApiDocument(kinds.all(), version);
    forms = { json: JSON.stringify(document), protobuf: openApiProtobuf(document) };
    made.set(kinds, forms);
  }
  // The reference declares the type of a Go content negotiator, and JSON as text; clients rely on neither.
  if (accept?.includes("proto-openapi.spec.v2")) return { body: forms.protobuf, type: protobufType };
  return { body: forms.json, type: "text/plain; charset=utf-8" };
}
