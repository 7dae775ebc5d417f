/**
 * Reads objects in `application/vnd.kubernetes.protobuf`, the form in which compiled Go clients
 * send them: four bytes of magic, an envelope with the kind, and the object's message in it.
 */

import { apiTime, KubeApiError } from "@longshore/kube/basics";
import { badRequest } from "../api/errors.ts";
import { parseJson } from "../api/json.ts";
import { setMember } from "../api/set-member.ts";
import { spendTime } from "../api/work-time.ts";
import { isOmitted } from "./go-forms.ts";
import { hasMessage, type MessageField, messageFields, messageOfKind } from "./message-fields.ts";
import { structOf } from "./schema.ts";

const byNumber = new Map<string, ReadonlyMap<number, MessageField>>();

function fieldsOf(message: string): ReadonlyMap<number, MessageField> {
  let fields = byNumber.get(message);
  if (fields === undefined) {
    fields = new Map(messageFields(message).map((field) => [field.number, field]));
    byNumber.set(message, fields);
  }
  return fields;
}

type Value = bigint | Uint8Array;

/** A body can have a million of them. */
const nothing: Uint8Array = Buffer.alloc(0);

/** The fields of a message as they come: number and value. */
function* read(bytes: Uint8Array): Generator<readonly [number, Value]> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 63n) throw badRequest("the protobuf body is cut off");
      value |= BigInt(byte & 127) << shift;
      // An integer below zero comes as its two's complement of 64 bits.
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  };
  const take = (length: number): Uint8Array => {
    // A length below zero would lead back to what was read, for ever.
    if (length < 0 || at + length > bytes.length) throw badRequest("the protobuf body is cut off");
    at += length;
    return length === 0 ? nothing : bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    spendTime();
    const key = Number(varint());
    const kind = key & 7;
    if (kind === 0) yield [key >> 3, varint()];
    else if (kind === 2) yield [key >> 3, take(Number(varint()))];
    // No type of the API has these widths: they are read to get past a field that is not known.
    else if (kind === 1 || kind === 5) yield [key >> 3, take(kind === 1 ? 8 : 4)];
    else throw badRequest("the protobuf body cannot be read");
  }
}

const text = (value: Value): string =>
  typeof value === "bigint"
    ? String(value)
    : Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("utf8");

function scalarOrMessage(type: string, value: Value): unknown {
  if (type === "string") return text(value);
  if (type === "bool") return value !== 0n;
  if (typeof value === "bigint") return Number(value);
  switch (type) {
    case "bytes":
      return Buffer.from(value).toString("base64");
    case "meta.v1.Time":
    case "meta.v1.MicroTime":
      return timeOf(value, type === "meta.v1.MicroTime");
    case "api.resource.Quantity":
      return text(firstOf(value, 1) ?? new Uint8Array());
    case "util.intstr.IntOrString":
      return Number(firstOf(value, 1) ?? 0n) === 1
        ? text(firstOf(value, 3) ?? new Uint8Array())
        : Number(firstOf(value, 2) ?? 0n);
    case "meta.v1.FieldsV1":
    case "runtime.RawExtension":
      return parseJson(text(firstOf(value, 1) ?? new Uint8Array()) || "{}");
    default: {
      const message = messageOf(type, value);
      // A named list type in Go is a message with items.
      return isNamedList(type) ? (message.items ?? []) : message;
    }
  }
}

function isNamedList(type: string): boolean {
  return type.endsWith(".ExtraValue");
}

function firstOf(message: Uint8Array, number: number): Value | undefined {
  for (const [n, value] of read(message)) if (n === number) return value;
  return undefined;
}

/** A time without seconds is no time. */
function timeOf(message: Uint8Array, micro: boolean): string | undefined {
  const seconds = firstOf(message, 1);
  if (seconds === undefined) return undefined;
  const time = apiTime(new Date(Number(seconds) * 1000));
  const nanos = Number(firstOf(message, 2) ?? 0n);
  return micro ? `${time.slice(0, -1)}.${String(Math.floor(nanos / 1000)).padStart(6, "0")}Z` : time;
}

/** A message as the JSON of its type. Messages that JSON knows as inlined are merged into their parent. */
function messageOf(type: string, bytes: Uint8Array): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const fields = fieldsOf(type);
  for (const [number, value] of read(bytes)) {
    const field = fields.get(number);
    // A field of a newer API is dropped, as an unknown member of JSON is.
    if (field === undefined) continue;
    if (field.form === "list") {
      const list = (result[field.name] ?? []) as unknown[];
      list.push(scalarOrMessage(field.type, value));
      result[field.name] = list;
    } else if (field.form === "map") {
      if (typeof value === "bigint") throw badRequest("the protobuf body cannot be read");
      const entry = value;
      const map = (result[field.name] ?? {}) as Record<string, unknown>;
      const isText = field.type === "string" || field.type === "bytes";
      const empty = isText ? "" : isNamedList(field.type) ? [] : {};
      // An entry may leave out a value that is empty.
      const content = firstOf(entry, 2);
      const key = text(firstOf(entry, 1) ?? new Uint8Array());
      setMember(map, key, content === undefined ? empty : scalarOrMessage(field.type, content));
      result[field.name] = map;
    } else {
      const decoded = scalarOrMessage(field.type, value);
      if (field.inlined && typeof decoded === "object") Object.assign(result, decoded);
      else if (decoded !== undefined && !isUnset(type, field.name, decoded)) result[field.name] = decoded;
    }
  }
  return result;
}

/** Go writes out empty texts that its JSON leaves away: those that are neither required nor held by pointer. */
function isUnset(type: string, member: string, value: unknown): boolean {
  return value === "" && structOf(type)?.get(member)?.required !== true && isOmitted(type, member, value);
}

/** The object of a protobuf body, with its kind. @throws KubeApiError 400 */
export function objectFromProtobuf(body: Uint8Array): Record<string, unknown> {
  try {
    return readObject(body);
  } catch (error) {
    if (error instanceof KubeApiError) throw error;
    // A time beyond the calendar, or embedded JSON that is none.
    throw badRequest(`the protobuf body cannot be read: ${(error as Error).message}`);
  }
}

function readObject(body: Uint8Array): Record<string, unknown> {
  if (Buffer.from(body.subarray(0, 4)).toString("latin1") !== "k8s\0") {
    throw badRequest("provided data does not appear to be a protobuf message, expected prefix 6b 38 73 00");
  }
  let apiVersion = "";
  let kind = "";
  let raw: Uint8Array = new Uint8Array();
  for (const [number, value] of read(body.subarray(4))) {
    if (number === 1 && typeof value !== "bigint") {
      apiVersion = text(firstOf(value, 1) ?? new Uint8Array());
      kind = text(firstOf(value, 2) ?? new Uint8Array());
    } else if (number === 2 && typeof value !== "bigint") raw = value;
  }
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/", 2) : ["", apiVersion];
  if (!hasMessage(group ?? "", kind)) {
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
  }
  return { apiVersion, kind, ...messageOf(messageOfKind(group ?? "", kind, version), raw) };
}
