/**
 * The OpenAPI v2 document in protobuf, the form that kubectl asks for (message openapi.v2.Document;
 * field numbers as in OpenAPIv2.proto of gnostic). Written by hand: it is a dozen messages, written once.
 */
import type { DocumentV2, OperationV2, ParameterV2, PathItemV2 } from "./documents.ts";
import type { Method, Schema } from "./model.ts";

/** Pieces of bytes in their order, and how many bytes they are together. */
interface Part {
  readonly pieces: readonly (Uint8Array | Part)[];
  readonly bytes: number;
}

const nothing: Part = { pieces: [], bytes: 0 };
const encoder = new TextEncoder();

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Uint8Array.from(bytes);
}

function together(...parts: readonly Part[]): Part {
  return { pieces: parts, bytes: parts.reduce((sum, part) => sum + part.bytes, 0) };
}

/** A length-delimited field, text or message; none for undefined. */
function field(number: number, content: string | Part | undefined): Part {
  if (content === undefined) return nothing;
  const inner = typeof content === "string" ? encoder.encode(content) : content;
  const innerBytes = inner instanceof Uint8Array ? inner.length : inner.bytes;
  const head = varint(number * 8 + 2);
  const length = varint(innerBytes);
  return { pieces: [head, length, inner], bytes: head.length + length.length + innerBytes };
}

function flag(number: number, value: boolean | undefined): Part {
  if (value !== true) return nothing;
  const pieces = [varint(number * 8), varint(1)];
  return { pieces, bytes: 2 };
}

const repeated = (number: number, contents: readonly (string | Part)[] = []): Part =>
  together(...contents.map((content) => field(number, content)));

/** A value as YAML, of which JSON is a part (message Any). */
const any = (value: unknown): Part => field(2, JSON.stringify(value));

/** Extensions: NamedAny. */
function extensions(number: number, object: object): Part {
  const found = Object.entries(object).filter(([key]) => key.startsWith("x-"));
  return repeated(
    number,
    found.map(([key, value]) => together(field(1, key), field(2, any(value)))),
  );
}

function schema(s: Schema): Part {
  return together(
    field(1, s.$ref),
    field(2, s.format),
    field(4, s.description),
    field(5, s.default === undefined ? undefined : any(s.default)),
    repeated(19, s.required),
    repeated(20, s.enum?.map(any)),
    field(21, s.additionalProperties && field(1, schema(s.additionalProperties))),
    field(22, s.type === undefined ? undefined : field(1, s.type)),
    field(23, s.items && field(1, schema(s.items))),
    field(25, s.properties && namedSchemas(s.properties)),
    extensions(31, s),
  );
}

function namedSchemas(schemas: Readonly<Record<string, Schema>>): Part {
  return repeated(
    1,
    Object.entries(schemas).map(([name, s]) => together(field(1, name), field(2, schema(s)))),
  );
}

/** ParametersItem: the body, or one of the query or the path. */
function parameter(p: ParameterV2): Part {
  if (p.in === "body") {
    const body = together(
      field(2, p.name),
      field(3, p.in),
      flag(4, p.required),
      field(5, p.schema === undefined ? undefined : schema(p.schema)),
    );
    return field(1, field(1, body));
  }
  const isPath = p.in === "path";
  const sub = together(flag(1, p.required), field(2, p.in), field(4, p.name), field(isPath ? 5 : 6, p.type));
  return field(1, field(2, field(isPath ? 4 : 3, sub)));
}

function operation(o: OperationV2): Part {
  const responses = Object.entries(o.responses).map(([code, response]) => {
    const of = together(field(1, response.description), field(2, field(1, schema(response.schema))));
    return together(field(1, code), field(2, field(1, of)));
  });
  return together(
    repeated(1, o.tags),
    field(5, o.operationId),
    repeated(6, o.produces),
    repeated(7, o.consumes),
    repeated(8, o.parameters.map(parameter)),
    field(9, repeated(1, responses)),
    extensions(13, o),
  );
}

const methodNumbers: Readonly<Record<Method, number>> = { get: 2, put: 3, post: 4, delete: 5, patch: 8 };

function pathItem(item: PathItemV2): Part {
  const operations = Object.entries(methodNumbers).map(([method, number]) => {
    const of = item[method as Method];
    return field(number, of === undefined ? undefined : operation(of));
  });
  return together(...operations, repeated(9, item.parameters?.map(parameter)));
}

/** The document as bytes. */
export function protobufV2(document: DocumentV2): Uint8Array {
  const paths = Object.entries(document.paths).map(([name, item]) =>
    together(field(1, name), field(2, pathItem(item))),
  );
  const { info } = document;
  return bytesOf(
    together(
      field(1, document.swagger),
      field(2, together(field(1, info.title), field(2, info.version))),
      field(8, repeated(2, paths)),
      field(9, namedSchemas(document.definitions)),
    ),
  );
}

function bytesOf(part: Part): Uint8Array {
  // Copied only here: joined at each level, a piece would be copied once for every message around it.
  const bytes = new Uint8Array(part.bytes);
  let at = 0;
  const put = (pieces: Part["pieces"]) => {
    for (const piece of pieces) {
      if (piece instanceof Uint8Array) {
        bytes.set(piece, at);
        at += piece.length;
      } else put(piece.pieces);
    }
  };
  put(part.pieces);
  return bytes;
}
