import { describe, expect, it } from "vitest";
import { builtInKinds } from "../registry/kinds/index.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { decodeObject } from "./decode-object.ts";
import { mergeRules } from "./merge-rules.ts";
import { objectFromProtobuf } from "./object-from-protobuf.ts";
import { structNameOf, structNames, structOf, type TypeRef } from "./schema.ts";

describe("reading an object", () => {
  it("drops what the API does not know, and what is null", () => {
    const given = { kind: "Pod", more: 1, spec: { nodeName: null, hostNetwork: true, colour: "red" } };
    expect(decodeObject("", "Pod", given)).toEqual({ kind: "Pod", spec: { hostNetwork: true } });
  });

  it("writes quantities in their one form, numbers too", () => {
    const given = { spec: { capacity: { storage: "1024Mi", cpu: 2, memory: "0.5" } } };
    const decoded = decodeObject("", "PersistentVolume", given);
    expect(decoded).toEqual({ spec: { capacity: { storage: "1Gi", cpu: "2", memory: "500m" } } });
  });

  it("keeps the keys of maps, whatever they are", () => {
    const data = JSON.parse('{"__proto__":"x","constructor":"y","":"z"}');
    const decoded = decodeObject("", "ConfigMap", { data }) as { data: object };
    expect(Object.keys(decoded.data)).toContain("constructor");
    expect(Object.getPrototypeOf(decoded.data)).toBe(Object.prototype);
  });

  it.each([
    [
      "a text for a number",
      "apps",
      "StatefulSet",
      { spec: { replicas: "3" } },
      /spec\.replicas: expected an integer/,
    ],
    ["a fraction", "apps", "StatefulSet", { spec: { replicas: 1.5 } }, /spec\.replicas: expected an integer/],
    [
      "a number for a text",
      "",
      "Pod",
      { spec: { nodeName: 1 } },
      /spec\.nodeName: expected a string, got a number/,
    ],
    ["a list for an object", "", "Pod", { metadata: [] }, /metadata: expected an object, got a list/],
    ["an object for a list", "", "Pod", { spec: { containers: {} } }, /containers: expected a list/],
    [
      "a wrong item of a list",
      "",
      "Pod",
      { spec: { containers: [3] } },
      /containers\[0\]: expected an object/,
    ],
    ["a wrong value of a map", "", "Pod", { metadata: { labels: { a: 1 } } }, /labels\.a: expected a string/],
    ["a text for a flag", "", "Pod", { spec: { hostNetwork: "yes" } }, /hostNetwork: expected true or false/],
    [
      "what is not a quantity",
      "",
      "PersistentVolume",
      { spec: { capacity: { storage: "1 GB" } } },
      /quantities must match/,
    ],
    [
      "a quantity that is a list",
      "",
      "PersistentVolume",
      { spec: { capacity: { storage: [] } } },
      /quantities must match/,
    ],
    ["what is no time", "", "Pod", { metadata: { deletionTimestamp: "now" } }, /RFC 3339/],
    ["a list as an object", "", "Pod", [], /Pod: expected an object, got a list/],
    ["a text as an object", "", "Pod", "pod", /Pod: expected an object, got a string/],
    ["what is no base64", "", "Secret", { data: { a: "YQ" } }, /Secret\.data\.a: the text is no base64/],
    [
      "a day that is none",
      "",
      "Pod",
      { metadata: { deletionTimestamp: "2020-02-30T00:00:00Z" } },
      /RFC 3339/,
    ],
    [
      "a microtime without its microseconds",
      "coordination.k8s.io",
      "Lease",
      { spec: { renewTime: "2020-01-01T00:00:00Z" } },
      /05\.000000Z/,
    ],
    [
      "an integer beyond its type",
      "apps",
      "Deployment",
      { spec: { replicas: 2 ** 31 } },
      /spec\.replicas: .*32 bits/,
    ],
    ["a port beyond its type", "", "Service", { spec: { ports: [{ targetPort: 2 ** 31 }] } }, /32 bits/],
  ])("refuses %s, naming the member", (_name, group, kind, value, message) => {
    const attempt = () => decodeObject(group, kind, value);
    expect(attempt).toThrow(message);
    expect(attempt).toThrow(expect.objectContaining({ code: 400 }));
  });
});

describe("the schema", () => {
  it("knows every kind that is served, down to its leaves", () => {
    const missing: string[] = [];
    const seen = new Set<string>();
    const visit = (type: TypeRef, at: string): void => {
      if (type.form === "list" || type.form === "map") visit(type.of, at);
      if (type.form !== "struct" || seen.has(type.name)) return;
      seen.add(type.name);
      const struct = structOf(type.name);
      if (struct === undefined) missing.push(at);
      for (const member of struct?.values() ?? []) visit(member.type, `${at}.${member.name}`);
    };
    for (const { group, kind } of builtInKinds(emulatedVersion()))
      visit({ form: "struct", name: structNameOf(group, kind) }, kind);
    expect(missing).toEqual([]);
    expect(structNames().length).toBeGreaterThan(200);
  });

  it("has merge rules for members that exist only, and keys that the items have", () => {
    const wrong = Object.entries(mergeRules).filter(([path, { mergeKey }]) => {
      const cut = path.lastIndexOf(".");
      const struct = structOf(path.slice(0, cut));
      // Rules of kinds that are not served are kept: the published schema has them.
      if (struct === undefined) return false;
      const type = struct.get(path.slice(cut + 1))?.type;
      if (mergeKey === undefined) return type === undefined;
      const item = type?.form === "list" && type.of.form === "struct" ? structOf(type.of.name) : undefined;
      return item?.has(mergeKey) !== true;
    });
    expect(wrong.map(([path]) => path)).toEqual([]);
  });
});

describe("reading protobuf", () => {
  /** A length-delimited field. */
  const field = (number: number, content: Buffer | string) => {
    const bytes = Buffer.from(content);
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  };
  const envelope = (apiVersion: string, kind: string, raw: Buffer) =>
    Buffer.concat([
      Buffer.from("k8s\0"),
      field(1, Buffer.concat([field(1, apiVersion), field(2, kind)])),
      field(2, raw),
    ]);

  it("gives the object that was sent", () => {
    const metadata = field(1, "c");
    const entry = Buffer.concat([field(1, "key"), field(2, "value")]);
    const body = envelope("v1", "ConfigMap", Buffer.concat([field(1, metadata), field(2, entry)]));
    expect(objectFromProtobuf(body)).toEqual({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "c" },
      data: { key: "value" },
    });
  });

  it.each([
    ["JSON", Buffer.from("{}")],
    ["nothing", Buffer.alloc(0)],
    ["a field that is cut off", Buffer.concat([Buffer.from("k8s\0"), Buffer.from([0x12, 0x7f])])],
    ["a number that never ends", Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(12, 0xff)])],
    ["a group", Buffer.concat([Buffer.from("k8s\0"), Buffer.from([0x13])])],
    [
      "a length beyond all bounds",
      Buffer.from([0x6b, 0x38, 0x73, 0, 0x12, 255, 255, 255, 255, 255, 255, 255, 255, 127]),
    ],
    [
      "a negative length",
      Buffer.from([0x6b, 0x38, 0x73, 0, 0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
    ],
    ["a number where the metadata should be", envelope("v1", "Pod", Buffer.from([0x08, 0x05]))],
    ["a number where a map's entry should be", envelope("v1", "ConfigMap", Buffer.from([0x10, 0x05]))],
  ])("refuses %s", (_name, body) => {
    expect(() => {
      const object = objectFromProtobuf(body);
      decodeObject("", String(object.kind), object);
    }).toThrow(expect.objectContaining({ code: 400 }));
  });
});
