import type { KubeObject } from "@longshore/kube";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { builtInKinds } from "../registry/kinds/index.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { hasMessage, messageFields, messageOfKind } from "./message-fields.ts";
import { objectFromProtobuf } from "./object-from-protobuf.ts";
import { itemHead, listHead, messageBytes, objectToProtobuf, watchFrame } from "./object-to-protobuf.ts";
import { structOf, type TypeRef } from "./schema.ts";

const served = builtInKinds(emulatedVersion("1.36"));
const kinds = served
  .filter((kind) => hasMessage(kind.group, kind.kind))
  .flatMap((kind) => kind.versions.map((version) => ({ group: kind.group, kind: kind.kind, version })));

/** Texts that mean something: an empty one is no different from none in most members. */
const texts = fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 });
const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
const timeText = (at: number) => new Date(at * 1000).toISOString().slice(0, 19);

/** Values of a type, with every member that protobuf knows. */
function valuesOf(type: TypeRef, wireType: string, depth: number): fc.Arbitrary<unknown> {
  switch (type.form) {
    case "string":
      return wireType === "bytes"
        ? fc.uint8Array({ minLength: 1, maxLength: 9 }).map((b) => Buffer.from(b).toString("base64"))
        : texts;
    case "integer":
      return wireType === "int64"
        ? fc.integer({ min: -(2 ** 52), max: 2 ** 52 })
        : fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
    case "boolean":
      return fc.boolean();
    case "quantity":
      return fc.integer({ min: 1, max: 1000 }).map((n) => `${n}Gi`);
    case "time":
      return seconds.map((at) => `${timeText(at)}Z`);
    case "microTime":
      return fc
        .tuple(seconds, fc.integer({ min: 1, max: 999_999 }))
        .map(([at, micros]) => `${timeText(at)}.${String(micros).padStart(6, "0")}Z`);
    case "intOrString":
      return fc.oneof(fc.integer({ min: 0, max: 65_535 }), texts);
    case "list":
      return fc.array(valuesOf(type.of, itemType(wireType), depth), { minLength: 1, maxLength: 3 });
    case "map":
      return fc
        .array(fc.tuple(texts, valuesOf(type.of, wireType, depth)), { minLength: 1, maxLength: 3 })
        .map((entries) => Object.fromEntries(entries))
        .filter((map) => Object.keys(map).length > 0);
    case "struct":
      return membersOf(type.name, wireType, depth);
    case "any":
      return fc.constant({ "f:spec": { "f:x": {} } });
  }
}

/** A list may be a separate, named message with items. */
function itemType(wireType: string): string {
  return (
    messageFields(wireType).find((field) => field.name === "items" && field.form === "list")?.type ?? wireType
  );
}

function membersOf(struct: string, message: string, depth: number): fc.Arbitrary<unknown> {
  if (message === "meta.v1.FieldsV1") return fc.constant({ "f:spec": { "f:x": {} } });
  const members: Record<string, fc.Arbitrary<unknown>> = {};
  const add = (fields: ReturnType<typeof messageFields>) => {
    for (const field of fields) {
      if (field.inlined) add(messageFields(field.type));
      const member = structOf(struct)?.get(field.name);
      if (member !== undefined && depth > 0)
        members[field.name] = valuesOf(member.type, field.type, depth - 1);
    }
  };
  add(messageFields(message));
  return fc.record(members, { requiredKeys: [] });
}

/** Members of empty value are left away on the way: what carries nothing is nothing. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutEmpty(item) ?? {});
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value)
    .map(([key, member]) => [key, withoutEmpty(member)] as const)
    .filter(([, member]) => member !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

describe("objects in protobuf", () => {
  it("are there for every kind but definitions, which the reference's own client sends as JSON", () => {
    const others = served.filter((kind) => !hasMessage(kind.group, kind.kind)).map(({ kind }) => kind);
    expect(others).toEqual(["CustomResourceDefinition"]);
  });

  it.each(kinds.map((kind) => [`${kind.group}/${kind.version} ${kind.kind}`, kind] as const))(
    "%s: read again as written",
    (_, kind) => {
      const message = messageOfKind(kind.group, kind.kind, kind.version);
      const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
      fc.assert(
        fc.property(membersOf(message, message, 12), (members) => {
          const object = { ...(members as object), apiVersion, kind: kind.kind } as KubeObject;
          const bytes = objectToProtobuf(object) as Buffer;
          expect(withoutEmpty(objectFromProtobuf(bytes))).toEqual(withoutEmpty(object));
        }),
        { numRuns: 15 },
      );
    },
  );

  it("know every member that JSON knows, but for those that the API has given up", () => {
    const lost: string[] = [];
    const seen = new Set<string>();
    const look = (message: string) => {
      if (seen.has(message)) return;
      seen.add(message);
      const fields = messageFields(message).flatMap((f) => (f.inlined ? [f, ...messageFields(f.type)] : [f]));
      const known = new Set(["apiVersion", "kind", ...fields.map((field) => field.name)]);
      for (const name of structOf(message)?.keys() ?? [])
        if (!known.has(name)) lost.push(`${message}.${name}`);
      for (const field of fields) look(field.type);
    };
    for (const kind of kinds) look(messageOfKind(kind.group, kind.kind, kind.version));
    expect(lost).toEqual([
      "core.v1.PodResourceClaim.source",
      "core.v1.ServiceSpec.topologyKeys",
      // No client can write it; its number is that of the member of v1beta1, which 1.20 has.
      "discovery.v1.Endpoint.deprecatedTopology",
    ]);
  });

  it("are written as compiled clients read them", () => {
    const object = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a" },
      data: { b: "2", a: "1" },
    };
    const text = (value: string) => Buffer.from(value);
    expect(objectToProtobuf(object)).toEqual(
      Buffer.concat([
        text("k8s\0"),
        Buffer.from([0x0a, 15, 0x0a, 2]),
        text("v1"),
        Buffer.from([0x12, 9]),
        text("ConfigMap"),
        Buffer.from([0x12, 21, 0x0a, 3, 0x0a, 1]),
        text("a"),
        Buffer.from([0x12, 6, 0x0a, 1]),
        text("a"),
        Buffer.from([0x12, 1]),
        text("1"),
        Buffer.from([0x12, 6, 0x0a, 1]),
        text("b"),
        Buffer.from([0x12, 1]),
        text("2"),
      ]),
    );
  });

  it("that are longer than what is set aside for them are whole", () => {
    const object = { apiVersion: "v1", kind: "ConfigMap", data: { a: "ä".repeat(500_000) } };
    expect(objectFromProtobuf(objectToProtobuf(object) as Buffer)).toEqual(object);
  });

  it("have no form for an unknown kind", () => {
    expect(objectToProtobuf({ apiVersion: "example.com/v1", kind: "Widget" })).toBeUndefined();
  });

  it("make lists item by item", () => {
    const items = ["a", "b"].map((name) =>
      messageBytes("", "ConfigMap", { metadata: { name } } as KubeObject),
    );
    const parts = items.flatMap((item) => [itemHead(item.length), item]);
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    const metadata = { resourceVersion: "7", remainingItemCount: 3 };
    const list = Buffer.concat([listHead("v1", "ConfigMapList", metadata, bytes), ...parts]);
    expect(objectFromProtobuf(list)).toEqual({
      apiVersion: "v1",
      kind: "ConfigMapList",
      metadata,
      items: [{ metadata: { name: "a" } }, { metadata: { name: "b" } }],
    });
  });

  it("make frames of a watch, each with its length before it", () => {
    const object = objectToProtobuf({
      apiVersion: "v1",
      kind: "ConfigMap",
      data: { a: "1" },
    } as KubeObject) as Buffer;
    const frame = watchFrame("ADDED", object);
    expect(frame.readUInt32BE()).toBe(frame.length - 4);
    expect(frame.subarray(4, 11)).toEqual(Buffer.concat([Buffer.from([0x0a, 5]), Buffer.from("ADDED")]));
    expect(frame.subarray(-object.length)).toEqual(object);
  });
});

it("a length below zero is refused, and is not read for ever", () => {
  // runtime.Unknown with its field 2 (raw): a Pod whose field 1 has the length -11.
  const minusEleven = [0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
  const meta = [0x0a, 9, 0x0a, 2, ...Buffer.from("v1"), 0x12, 3, ...Buffer.from("Pod")];
  const raw = [0x0a, ...minusEleven];
  const body = Uint8Array.from([...Buffer.from("k8s\0"), ...meta, 0x12, raw.length, ...raw]);
  expect(() => objectFromProtobuf(body)).toThrow("the protobuf body is cut off");
});
