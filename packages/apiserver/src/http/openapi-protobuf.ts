/**
 * The OpenAPI v2 document in protobuf, the form that kubectl asks for (message openapi.v2.Document;
 * field numbers as in OpenAPIv2.proto of gnostic). Written by hand: it is a dozen messages, written once.
 */
import type { OpenApiDocument, Operation, Schema } from "./openapi-document.ts";

type Part = readonly Uint8Array[];

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

/** A length-delimited field: a string or a message. */
function field(number: number, content: string | Part): Part {
  const parts = typeof content === "string" ? [encoder.encode(content)] : content;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [varint(number * 8 + 2), varint(length), ...parts];
}

function optional(number: number, content: string | Part | undefined): Part {
  return content === undefined ? [] : field(number, content);
}

/** An extension: NamedAny whose value is YAML, of which JSON is a part. */
function extensions(number: number, object: object): Part {
  return Object.entries(object)
    .filter(([key]) => key.startsWith("x-"))
    .flatMap(([key, value]) => [
      ...field(number, [...field(1, key), ...field(2, field(2, JSON.stringify(value)))]),
    ]);
}

function schema(s: Schema): Part {
  return [
    ...optional(1, s.$ref),
    ...optional(2, s.format),
    ...optional(4, s.description),
    ...(s.required ?? []).flatMap((name) => field(19, name)),
    ...optional(21, s.additionalProperties && field(1, schema(s.additionalProperties))),
    ...optional(22, s.type && field(1, s.type)),
    ...optional(23, s.items && field(1, schema(s.items))),
    ...optional(25, s.properties && namedSchemas(s.properties)),
    ...extensions(31, s),
  ];
}

function namedSchemas(schemas: Readonly<Record<string, Schema>>): Part {
  return Object.entries(schemas).flatMap(([name, s]) => [
    ...field(1, [...field(1, name), ...field(2, schema(s))]),
  ]);
}

function operation(o: Operation): Part {
  return [
    ...field(5, o.operationId),
    ...o.parameters.flatMap((p) => {
      const query = [...field(2, p.in), ...field(4, p.name), ...field(6, p.type)];
      return [...field(8, field(1, field(2, field(3, query))))];
    }),
    ...field(
      9,
      Object.entries(o.responses).flatMap(([code, { description }]) => [
        ...field(1, [...field(1, code), ...field(2, field(1, field(1, description)))]),
      ]),
    ),
    ...extensions(13, o),
  ];
}

const verbNumbers: Readonly<Record<string, number>> = { get: 2, put: 3, post: 4, delete: 5, patch: 8 };

/** The document as bytes. */
export function openApiProtobuf(document: OpenApiDocument): Uint8Array {
  const paths = Object.entries(document.paths).flatMap(([name, operations]) => {
    const item = Object.entries(operations).flatMap(([verb, o]) => [
      ...field(verbNumbers[verb] ?? 2, operation(o)),
    ]);
    return [...field(2, [...field(1, name), ...field(2, item)])];
  });
  const { info } = document;
  return Buffer.concat([
    ...field(1, document.swagger),
    ...field(2, [...field(1, info.title), ...field(2, info.version)]),
    ...field(8, paths),
    ...field(9, namedSchemas(document.definitions)),
  ]);
}
