/**
 * Writes objects in `application/vnd.kubernetes.protobuf`, the form in which compiled Go clients ask for
 * them: four bytes of magic, an envelope (runtime.Unknown) with the kind, and the object's message in it.
 *
 * Messages are written from their end to their beginning, so that the length of each is known when it is due.
 */

import type { KubeObject } from "@longshore/kube";
import { toGoJson } from "../api/json.ts";
import { spendTime } from "../api/work-time.ts";
import { hasMessage, type MessageField, messageFields, messageOfKind } from "./message-fields.ts";

/** The media type. */
export const protobufType = "application/vnd.kubernetes.protobuf";

const magic = Buffer.from("k8s\0");

/** A buffer that is filled from its end. */
class BackwardWriter {
  #buffer: Buffer;
  #at: number;

  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(bytes);
    this.#at = bytes;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#buffer.length - this.#at;
  }

  /** Forgets what was written. */
  reset(): void {
    this.#at = this.#buffer.length;
  }

  /** A copy of what was written. */
  take(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#at));
  }

  #room(bytes: number): void {
    if (this.#at >= bytes) return;
    const used = this.length;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, used + bytes));
    this.#buffer.copy(larger, larger.length - used, this.#at);
    this.#buffer = larger;
    this.#at = larger.length - used;
  }

  bytes(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#at -= bytes.length;
    this.#buffer.set(bytes, this.#at);
  }

  text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#room(length);
    this.#at -= length;
    this.#buffer.write(text, this.#at, length, "utf8");
  }

  varint(value: number): void {
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
      this.#longVarint(BigInt(value));
      return;
    }
    let length = 1;
    for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) length++;
    this.#room(length);
    this.#at -= length;
    let rest = value;
    for (let i = 0; i < length - 1; i++) {
      this.#buffer[this.#at + i] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.#buffer[this.#at + length - 1] = rest;
  }

  /** A negative number is written as its two's complement of 64 bits. */
  #longVarint(value: bigint): void {
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, value);
    for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    this.bytes(Uint8Array.from([...bytes, Number(rest)]));
  }

  tag(number: number, wireType: 0 | 2): void {
    this.varint(number * 8 + wireType);
  }
}

type Json = Readonly<Record<string, unknown>>;

function writeMessage(to: BackwardWriter, message: string, value: Json): void {
  const fields = messageFields(message);
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i] as MessageField;
    if (field.inlined) {
      // Omits an embedded struct without members.
      writeField(to, field.number, () => writeMessage(to, field.type, value), true);
      continue;
    }
    const member = value[field.name];
    if (member === undefined || member === null) continue;
    if (field.form === "list") writeList(to, field, member);
    else if (field.form === "map") writeMap(to, field, member);
    else writeValue(to, field.number, field.type, member);
  }
}

function writeList(to: BackwardWriter, field: MessageField, member: unknown): void {
  if (!Array.isArray(member)) return;
  for (let i = member.length - 1; i >= 0; i--) {
    // A null stays an item: without it, those behind would move up.
    writeValue(to, field.number, field.type, member[i] ?? emptyOf(field.type));
  }
}

/** A map is a list of messages of key and value, written in the order of the keys. */
function writeMap(to: BackwardWriter, field: MessageField, member: unknown): void {
  if (typeof member !== "object" || member === null) return;
  const keys = Object.keys(member).sort().reverse();
  for (const key of keys) {
    writeField(to, field.number, () => {
      writeValue(to, 2, field.type, (member as Json)[key] ?? emptyOf(field.type));
      writeField(to, 1, () => to.text(key));
    });
  }
}

function emptyOf(type: string): unknown {
  return type === "string" || type === "bytes" ? "" : {};
}

/** Writes what `content` writes as a length-delimited field. */
function writeField(to: BackwardWriter, number: number, content: () => void, dropEmpty = false): void {
  const before = to.length;
  content();
  const length = to.length - before;
  if (dropEmpty && length === 0) return;
  to.varint(length);
  to.tag(number, 2);
}

function writeValue(to: BackwardWriter, number: number, type: string, value: unknown): void {
  spendTime();
  if (type === "bool") writeNumber(to, number, value === true ? 1 : 0);
  else if (type === "int32" || type === "int64") writeNumber(to, number, Number(value));
  else writeField(to, number, () => writeContent(to, type, value));
}

function writeNumber(to: BackwardWriter, number: number, value: number): void {
  to.varint(Number.isInteger(value) ? value : 0);
  to.tag(number, 0);
}

function writeContent(to: BackwardWriter, type: string, value: unknown): void {
  switch (type) {
    case "string":
      to.text(String(value));
      break;
    case "bytes":
      to.bytes(Buffer.from(String(value), "base64"));
      break;
    case "meta.v1.Time":
    case "meta.v1.MicroTime":
      writeTime(to, String(value));
      break;
    case "api.resource.Quantity":
      writeField(to, 1, () => to.text(String(value)));
      break;
    case "util.intstr.IntOrString":
      writeIntOrString(to, value);
      break;
    case "meta.v1.FieldsV1":
    case "runtime.RawExtension":
      writeField(to, 1, () => to.text(toGoJson(value)));
      break;
    default:
      // A named list type in Go (Verbs, ExtraValue) is a message with items.
      if (Array.isArray(value)) writeMessage(to, type, { items: value });
      else if (typeof value === "object" && value !== null) writeMessage(to, type, value as Json);
  }
}

/** Seconds since 1970, and nanoseconds. */
function writeTime(to: BackwardWriter, text: string): void {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return;
  const fraction = /\.(\d{1,9})/.exec(text)?.[1] ?? "";
  if (fraction !== "") writeNumber(to, 2, Number(fraction.padEnd(9, "0")));
  writeNumber(to, 1, Math.floor(ms / 1000));
}

function writeIntOrString(to: BackwardWriter, value: unknown): void {
  if (typeof value === "number") {
    writeNumber(to, 2, value);
    writeNumber(to, 1, 0);
    return;
  }
  writeField(to, 3, () => to.text(String(value)));
  writeNumber(to, 1, 1);
}

/** Shared, because nothing is awaited while one is being filled. */
const shared = new BackwardWriter(64 * 1024);

/** The message of an object without its envelope, as items of lists are. */
export function messageBytes(group: string, kind: string, object: KubeObject, version = "v1"): Buffer {
  shared.reset();
  writeMessage(shared, messageOfKind(group, kind, version), object as Json);
  return shared.take();
}

/** A whole object in its envelope; undefined when its kind has no form in protobuf. */
export function objectToProtobuf(object: KubeObject): Buffer | undefined {
  const { apiVersion = "", kind = "" } = object;
  const group = groupOf(apiVersion);
  if (!hasMessage(group, kind)) return undefined;
  const version = apiVersion.slice(apiVersion.indexOf("/") + 1);
  shared.reset();
  writeMessage(shared, messageOfKind(group, kind, version), object as Json);
  return enveloped(apiVersion, kind);
}

/** The envelope around what {@link shared} holds (message runtime.Unknown). */
function enveloped(apiVersion: string, kind: string): Buffer {
  const length = shared.length;
  shared.varint(length);
  shared.tag(2, 2);
  writeField(shared, 1, () => {
    writeField(shared, 2, () => shared.text(kind));
    writeField(shared, 1, () => shared.text(apiVersion));
  });
  shared.bytes(magic);
  return shared.take();
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}

/** What stands before, between and behind the items of a list: each item is its message behind `itemHead`. */
export function listHead(apiVersion: string, kind: string, metadata: Json, itemsBytes: number): Buffer {
  shared.reset();
  writeField(shared, 1, () => writeMessage(shared, "meta.v1.ListMeta", metadata));
  // The items are sent behind this, piece by piece: only their bytes are counted in.
  const head = shared.length;
  shared.varint(head + itemsBytes);
  shared.tag(2, 2);
  writeField(shared, 1, () => {
    writeField(shared, 2, () => shared.text(kind));
    writeField(shared, 1, () => shared.text(apiVersion));
  });
  shared.bytes(magic);
  return shared.take();
}

/** Tag and length of an item of a list (field 2 of every list's message). */
export function itemHead(bytes: number): Buffer {
  shared.reset();
  shared.varint(bytes);
  shared.tag(2, 2);
  return shared.take();
}

/**
 * One event of a watch: four bytes of length, big endian, and a message meta.v1.WatchEvent whose object is whole
 * in its envelope (apimachinery runtime/serializer/streaming, util/framer).
 */
export function watchFrame(type: string, object: Uint8Array): Buffer {
  shared.reset();
  writeField(shared, 2, () => writeField(shared, 1, () => shared.bytes(object)));
  writeField(shared, 1, () => shared.text(type));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(shared.length);
  shared.bytes(length);
  return shared.take();
}
