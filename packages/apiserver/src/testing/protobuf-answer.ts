/**
 * Reads what an answer in protobuf says at a path of field numbers, knowing no schema: independent of the encoder that
 * it is there to judge. Form of paths: the README of the recordings, "Protobuf".
 */
import { differences, type Known } from "./expectation.ts";

/** A protobuf answer as recorded. */
export interface ExpectedProto {
  readonly apiVersion: string;
  readonly kind: string;
  readonly fields: readonly { readonly path: string; readonly name: string; readonly is: unknown }[];
}

type Wire = Buffer | bigint;

const prefix = Buffer.from("k8s\0");

/** What differs between an enveloped object (`k8s\0`, type, raw) and what is expected of it. */
export function protoDifferences(
  expected: ExpectedProto,
  bytes: Buffer,
  at: string,
  known: Known,
): readonly string[] {
  if (!bytes.subarray(0, 4).equals(prefix))
    return [`${at}: the answer does not begin with k8s and a zero byte`];
  const envelope = bytes.subarray(4);
  const text = (path: string) => String(valueAt(envelope, path) ?? "");
  const object = valueAt(envelope, "2");
  const given = { apiVersion: text("1.1"), kind: text("1.2") };
  const wanted = { apiVersion: expected.apiVersion, kind: expected.kind };
  const raw = Buffer.isBuffer(object) ? object : Buffer.alloc(0);
  return [
    ...differences(wanted, given, at, known),
    ...expected.fields.flatMap(({ path, name, is }) => {
      const value = valueAt(raw, path);
      const actual = typeof value === "bigint" ? Number(BigInt.asIntN(64, value)) : value?.toString("utf8");
      return differences(is, actual ?? emptyLike(is), `${at} ${name}`, known);
    }),
  ];
}

/** The events of a protobuf watch: frames of a length and a message of type and object. */
export function protoFrames(bytes: Buffer): {
  readonly frames: readonly ProtoEvent[];
  readonly rest: Buffer;
} {
  const frames: ProtoEvent[] = [];
  let rest = bytes;
  while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
    const frame = rest.subarray(4, 4 + rest.readUInt32BE(0));
    const object = valueAt(frame, "2.1");
    frames.push({
      type: String(valueAt(frame, "1") ?? ""),
      proto: Buffer.isBuffer(object) ? object : Buffer.alloc(0),
    });
    rest = rest.subarray(4 + frame.length);
  }
  return { frames, rest };
}

/** One event of a protobuf watch. */
export interface ProtoEvent {
  readonly type: string;
  readonly proto: Buffer;
}

/** A field that carries nothing may be left out by the encoder. */
function emptyLike(expected: unknown): unknown {
  return expected === 0 || expected === "" ? expected : undefined;
}

function valueAt(message: Buffer, path: string): Wire | undefined {
  let value: Wire = message;
  for (const part of path.split(".")) {
    const [, number, index = "0"] = /^(\d+)(?:\[(\d+)\])?$/.exec(part) ?? [];
    if (number === undefined || !Buffer.isBuffer(value)) return undefined;
    const found: { readonly value: Wire } | undefined = fieldsOf(value).filter(
      (field) => field.number === Number(number),
    )[Number(index)];
    if (found === undefined) return undefined;
    value = found.value;
  }
  return value;
}

function fieldsOf(message: Buffer): readonly { readonly number: number; readonly value: Wire }[] {
  const fields: { number: number; value: Wire }[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new Error("a number in the protobuf answer has no end");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > message.length) throw new Error("a field of the protobuf answer is cut off");
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const form = tag & 7;
    if (form === 0) fields.push({ number: tag >>> 3, value: varint() });
    else if (form === 2) fields.push({ number: tag >>> 3, value: take(Number(varint())) });
    else if (form === 1) fields.push({ number: tag >>> 3, value: take(8).readBigUInt64LE() });
    else if (form === 5) fields.push({ number: tag >>> 3, value: BigInt(take(4).readUInt32LE()) });
    else throw new Error(`the protobuf answer has a field of the form ${form}`);
  }
  return fields;
}
