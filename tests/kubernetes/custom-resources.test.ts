/**
 * Definitions and custom resources of many kinds, right and wrong, sent to the real kube-apiserver and to the embedded
 * one that shows its version: both must say the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

type Json = Readonly<Record<string, unknown>>;

const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
let count = 0;

/** A definition with a group of its own. */
function aDefinition(version: Json = {}, spec: Json = {}, metadata: Json = {}) {
  const group = `g${++count}.example.com`;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${group}`, ...metadata },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: open }, ...version }],
      ...spec,
    },
  };
}

const ofSchema = (schema: unknown) => aDefinition({ schema: { openAPIV3Schema: schema } });
const ofSpec = (spec: unknown) => ofSchema({ type: "object", properties: { spec } });
const ofField = (a: unknown) => ofSpec({ type: "object", properties: { a } });

const badDefinitions: Readonly<Record<string, Json>> = {
  "a name of another": aDefinition({}, {}, { name: "others.example.com" }),
  "no group": aDefinition({}, { group: "" }),
  "a group without a dot": aDefinition({}, { group: "example" }, { name: "things.example" }),
  "no scope": aDefinition({}, { scope: "" }),
  "an unknown scope": aDefinition({}, { scope: "Everywhere" }),
  "no kind": aDefinition({}, { names: { plural: "things" } }),
  "a kind that is no word": aDefinition({}, { names: { plural: "things", kind: "A_b" } }),
  "a short name that is none": aDefinition(
    {},
    { names: { plural: "things", kind: "Thing", shortNames: ["A"] } },
  ),
  "one name for kind and list": aDefinition(
    {},
    { names: { plural: "things", kind: "Thing", listKind: "Thing" } },
  ),
  "no schema": aDefinition({ schema: {} }),
  "a version that is no name": aDefinition({ name: "V_1" }),
  "a scale outside of the spec": aDefinition({
    subresources: { scale: { specReplicasPath: ".a", statusReplicasPath: ".b", labelSelectorPath: ".c" } },
  }),
  "a column of an unknown type": aDefinition({
    additionalPrinterColumns: [{ name: "A", type: "word", jsonPath: ".a" }],
  }),
  "a column without a path": aDefinition({
    additionalPrinterColumns: [{ name: "A", type: "string", jsonPath: "" }],
  }),
  "a column of an unknown format": aDefinition({
    additionalPrinterColumns: [{ name: "A", type: "string", format: "x", jsonPath: ".a" }],
  }),
  "a warning without deprecation": aDefinition({ deprecationWarning: "old" }),
  "unknown fields preserved at large": aDefinition({}, { preserveUnknownFields: true }),
  "an empty schema": ofSchema({}),
  "a schema of texts": ofSchema({ type: "string" }),
  "a field without type": ofField({}),
  "an unknown type": ofField({ type: "word" }),
  "a list of nothing": ofField({ type: "array" }),
  "items without type": ofField({ type: "array", items: {} }),
  "unique items": ofField({ type: "array", uniqueItems: true, items: { type: "string" } }),
  "properties and others": ofField({
    type: "object",
    properties: { b: { type: "string" } },
    additionalProperties: { type: "string" },
  }),
  "no others": ofField({ type: "object", additionalProperties: false }),
  "a type in anyOf": ofField({ type: "string", anyOf: [{ type: "string" }] }),
  "a default in anyOf": ofField({ type: "string", anyOf: [{ default: "x" }] }),
  "a property of oneOf alone": ofField({ type: "object", oneOf: [{ properties: { b: { minimum: 1 } } }] }),
  "items of allOf alone": ofField({ type: "object", allOf: [{ items: { minimum: 1 } }] }),
  "a default of the wrong type": ofField({ type: "integer", default: "x" }),
  "a default that is too large": ofField({ type: "integer", maximum: 1, default: 2 }),
  "a map list without keys": ofField({
    type: "array",
    "x-kubernetes-list-type": "map",
    items: { type: "object" },
  }),
  "a map list of texts": ofField({
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a"],
    items: { type: "string" },
  }),
  "a map list with an optional key": ofField({
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a"],
    items: { type: "object", properties: { a: { type: "string" } } },
  }),
  "keys without a map list": ofField({
    type: "array",
    "x-kubernetes-list-map-keys": ["a"],
    items: { type: "object", properties: { a: { type: "string" } } },
  }),
  "a list type of an object": ofField({ type: "object", "x-kubernetes-list-type": "set" }),
  "an unknown list type": ofField({
    type: "array",
    "x-kubernetes-list-type": "bag",
    items: { type: "string" },
  }),
  "a set of objects": ofField({ type: "array", "x-kubernetes-list-type": "set", items: { type: "object" } }),
  "an unknown map type": ofField({ type: "object", "x-kubernetes-map-type": "bag" }),
  "a map type of a text": ofField({ type: "string", "x-kubernetes-map-type": "atomic" }),
  "an embedded text": ofField({ type: "string", "x-kubernetes-embedded-resource": true }),
  "an embedded resource of nothing": ofField({ type: "object", "x-kubernetes-embedded-resource": true }),
  "int-or-string with a type": ofField({ type: "string", "x-kubernetes-int-or-string": true }),
  "metadata with labels": ofSchema({
    type: "object",
    properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } },
  }),
  "a kind that is a number": ofSchema({ type: "object", properties: { kind: { type: "integer" } } }),
};

const schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        integer: { type: "integer", minimum: 1, maximum: 10 },
        exclusive: { type: "number", minimum: 1, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: true },
        multiple: { type: "integer", multipleOf: 3 },
        text: { type: "string", minLength: 2, maxLength: 4, pattern: "^a+$" },
        date: { type: "string", format: "date-time" },
        ipv4: { type: "string", format: "ipv4" },
        bytes: { type: "string", format: "byte" },
        uri: { type: "string", format: "uri" },
        list: { type: "array", minItems: 1, maxItems: 2, items: { type: "string" } },
        set: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
        map: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["k"],
          items: {
            type: "object",
            required: ["k"],
            properties: { k: { type: "string" }, v: { type: "integer" } },
          },
        },
        any: { "x-kubernetes-int-or-string": true },
        one: {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "string" } },
          oneOf: [{ required: ["a"] }, { required: ["b"] }],
        },
        some: {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "string" } },
          anyOf: [{ required: ["a"] }, { required: ["b"] }],
        },
        all: { type: "string", allOf: [{ minLength: 3 }, { pattern: "^x" }] },
        not: { type: "string", not: { enum: ["no"] } },
        object: {
          type: "object",
          minProperties: 1,
          maxProperties: 2,
          additionalProperties: { type: "integer" },
        },
        flag: { type: "boolean" },
        nullable: { type: "string", nullable: true },
        words: { type: "string", enum: ["a", "b"] },
        numbers: { type: "integer", enum: [1, 2] },
        embedded: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
        },
        filled: {
          type: "object",
          default: {},
          properties: {
            a: { type: "string", default: "A" },
            b: {
              type: "array",
              items: { type: "object", properties: { c: { type: "integer", default: 1 } } },
            },
          },
        },
      },
    },
  },
};

const specs: Readonly<Record<string, Json>> = {
  nothing: {},
  "an integer that is too small": { integer: 0 },
  "a fraction for an integer": { integer: 1.5 },
  "exclusive bounds": { exclusive: 1 },
  "the other exclusive bound": { exclusive: 2 },
  "a number that is no multiple": { multiple: 4 },
  "a text that is too short": { text: "a" },
  "a text that is too long and other": { text: "bbbbb" },
  "a date that is none": { date: "yesterday" },
  "a date": { date: "2024-02-29T00:00:00Z" },
  "a day that there is not": { date: "2023-02-29T00:00:00Z" },
  "an address that is none": { ipv4: "1.2.3.4.5" },
  "bytes that are none": { bytes: "%%" },
  "a URI that is none": { uri: "not a uri" },
  "an empty list": { list: [] },
  "a list that is too long": { list: ["a", "b", "c"] },
  "a list of numbers": { list: [1] },
  "a set with one twice": { set: ["a", "b", "a", "a"] },
  "a map list with one twice": { map: [{ k: "x" }, { k: "y" }, { k: "x", v: 1 }] },
  "a map list without a key": { map: [{}] },
  "a truth for int-or-string": { any: true },
  "none of two": { one: {} },
  "both of two": { one: { a: "a", b: "b" } },
  "none of some": { some: {} },
  "not all": { all: "x" },
  "none of all": { all: "y" },
  "what must not be": { not: "no" },
  "too few members": { object: {} },
  "too many members": { object: { a: 1, b: 2, c: 3 } },
  "a member of the wrong type": { object: { a: "x" } },
  "a text for a truth": { flag: "yes" },
  "null where it may be": { nullable: null },
  "null where it may not be": { flag: null, list: [null] },
  "an unknown word": { words: "c" },
  "an unknown number": { numbers: 3 },
  "an embedded resource without a kind": { embedded: { metadata: { name: "n", unknown: 1 }, more: 1 } },
  "an embedded resource": {
    embedded: { apiVersion: "v1", kind: "A", metadata: { name: "n", unknown: 1 }, more: 1 },
  },
  "what defaults fill": { filled: { b: [{}, { c: 2 }, { c: null }], gone: 1 } },
  "an object for a text": { text: {} },
  "a list for an object": { object: [] },
};

describe("the embedded API server says what kube-apiserver says", () => {
  let plane: ControlPlane;
  let embedded: TestServer;
  let to: HttpsConnections;

  beforeAll(async () => {
    [plane, embedded] = await Promise.all([
      startControlPlane(),
      serveForTest({ emulatedVersion: "1.20", controllers: false }),
    ]);
    to = new HttpsConnections(embedded.front.url, { ca: embedded.authority.certificate });
  });
  afterAll(async () => {
    to.close();
    await Promise.all([plane.stop(), embedded.stop()]);
  });

  async function ours(method: string, path: string, body?: unknown) {
    const answer = await to.send({
      method,
      path,
      headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: JSON.parse(answer.body.toString()) };
  }

  /** What clients act on; values of Go in messages are left out. */
  function essence({
    status,
    body,
  }: {
    readonly status: number;
    readonly body: { details?: { causes?: readonly Json[] }; spec?: unknown };
  }) {
    const causes = (body.details?.causes ?? []).map(
      ({ reason, field, message }) =>
        `${reason} ${field}: ${String(message).replace(/^(Invalid value|Duplicate value): .*?(?=: |$)/, "$1")}`,
    );
    return { status, causes: causes.sort(), ...(status === 201 ? { spec: body.spec } : {}) };
  }

  it.each(Object.entries(badDefinitions))("of a definition with %s", async (_name, definition) => {
    const real = essence(await plane.call("POST", definitions, definition));
    const own = essence(await ours("POST", definitions, definition));
    expect({ status: own.status, causes: own.causes }).toEqual({ status: real.status, causes: real.causes });
  });

  describe("of an object with", () => {
    const definition = ofSchema(schema);
    const path = `/apis/${definition.spec.group}/v1/namespaces/default/things`;

    beforeAll(async () => {
      expect((await plane.call("POST", definitions, definition)).status).toBe(201);
      expect((await ours("POST", definitions, definition)).status).toBe(201);
      await eventually("the real one serves it", async () => (await plane.call("GET", path)).status === 200);
    });

    it.each(Object.entries(specs))("%s", async (_name, spec) => {
      const object = {
        apiVersion: `${definition.spec.group}/v1`,
        kind: "Thing",
        metadata: { name: `thing-${++count}` },
        spec,
      };
      expect(essence(await ours("POST", path, object))).toEqual(
        essence(await plane.call("POST", path, object)),
      );
    });
  });
});
