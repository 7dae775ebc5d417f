/** Laws of pruning and defaulting over generated schemas and values, and tables of what structural schemas may say. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CustomSchema } from "../api/custom-schema.ts";
import { prune, prunedPaths } from "./prune.ts";
import { structuralProblems } from "./structural-problems.ts";
import { validateValue } from "./validate-value.ts";
import { withDefaults } from "./with-defaults.ts";

const names = ["a", "b", "spec", "x-y"];
const name = fc.constantFrom(...names);

const scalars: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: fc.string({ maxLength: 3 }),
  integer: fc.integer({ min: -5, max: 5 }),
  boolean: fc.boolean(),
};

/** Structural schemas whose defaults are valid. */
const { schema } = fc.letrec<{ schema: CustomSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom("string", "integer", "boolean").chain((type) =>
      fc.record(
        {
          type: fc.constant(type),
          nullable: fc.boolean(),
          default: scalars[type] as fc.Arbitrary<unknown>,
        },
        { requiredKeys: ["type"] },
      ),
    ),
    fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(name, tie("schema"), { maxKeys: 3 }),
        default: fc.constant({}),
        nullable: fc.boolean(),
        "x-kubernetes-preserve-unknown-fields": fc.constant(true as const),
      },
      { requiredKeys: ["type", "properties"] },
    ),
    fc.record({ type: fc.constant("object"), additionalProperties: tie("schema") }),
    fc.record({ type: fc.constant("array"), items: tie("schema") }),
  ) as fc.Arbitrary<CustomSchema>,
}));

const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.integer({ min: -5, max: 5 }),
    fc.string({ maxLength: 3 }),
    fc.boolean(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(name, fc.constant("unknown")), tie("value"), { maxKeys: 4 }),
  ),
})).value;

/** A value of the schema, with members left out at will. */
function aValueOf(of: CustomSchema): fc.Arbitrary<unknown> {
  const scalar = scalars[of.type ?? ""];
  if (scalar !== undefined) return scalar;
  if (of.type === "array") return fc.array(aValueOf(of.items ?? {}), { maxLength: 3 });
  if (typeof of.additionalProperties === "object") {
    return fc.dictionary(name, aValueOf(of.additionalProperties), { maxKeys: 3 });
  }
  const members = Object.entries(of.properties ?? {}).map(([key, one]) => [key, aValueOf(one)] as const);
  return fc.record(Object.fromEntries(members), { requiredKeys: [] });
}

describe("pruning and defaulting", () => {
  it("change nothing the second time", () => {
    fc.assert(
      fc.property(schema, value, (of, given) => {
        const pruned = prune(given, of);
        expect(prune(pruned, of)).toBe(pruned);
        expect(prunedPaths(pruned, of)).toEqual([]);
        const filled = withDefaults(pruned, of);
        expect(withDefaults(filled, of)).toBe(filled);
        // What defaults bring in is known to the schema.
        expect(prune(filled, of)).toEqual(filled);
      }),
    );
  });

  it("leave a valid value valid", () => {
    fc.assert(
      fc.property(
        schema.chain((of) => fc.tuple(fc.constant(of), aValueOf(of))),
        ([of, given]) => {
          expect(validateValue(given, of, { typedCauses: true, itemPaths: true }, "v")).toEqual([]);
          const shaped = withDefaults(prune(given, of), of);
          expect(validateValue(shaped, of, { typedCauses: true, itemPaths: true }, "v")).toEqual([]);
        },
      ),
    );
  });

  it("never change what they are given", () => {
    fc.assert(
      fc.property(schema, value, (of, given) => {
        const before = JSON.stringify(given);
        withDefaults(prune(given, of), of);
        expect(JSON.stringify(given)).toBe(before);
      }),
    );
  });

  it("keep metadata and what lies under unknown fields that are preserved", () => {
    const of: CustomSchema = {
      type: "object",
      properties: {
        raw: {
          type: "object",
          "x-kubernetes-preserve-unknown-fields": true,
          properties: { known: { type: "object" } },
        },
      },
    };
    const given = {
      kind: "A",
      metadata: { name: "n" },
      raw: { any: [{ x: 1 }], known: { gone: 1 } },
      gone: 1,
    };
    expect(prune(given, of)).toEqual({
      kind: "A",
      metadata: { name: "n" },
      raw: { any: [{ x: 1 }], known: {} },
    });
    expect(prunedPaths(given, of)).toEqual(["raw.known.gone", "gone"]);
  });
});

describe("a schema that is not structural", () => {
  const within = (part: object): CustomSchema => ({
    type: "object",
    properties: { a: part as CustomSchema },
  });
  const cases: readonly (readonly [string, CustomSchema, string])[] = [
    [
      "without a type",
      within({}),
      "s.properties[a].type: Required value: must not be empty for specified object fields",
    ],
    ["without a type at the root", {}, "s.type: Required value: must not be empty at the root"],
    [
      "of another type at the root",
      { type: "string" },
      's.type: Invalid value: "string": must be object at the root',
    ],
    [
      "with an array of nothing",
      within({ type: "array" }),
      "s.properties[a].items: Required value: must be specified",
    ],
    [
      "with a reference",
      within({ type: "string", $ref: "#/x" }),
      "s.properties[a].$ref: Forbidden: $ref is not supported",
    ],
    [
      "with unique items",
      within({ type: "array", uniqueItems: true, items: { type: "string" } }),
      "s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ],
    [
      "with properties and others",
      within({
        type: "object",
        properties: { b: { type: "string" } },
        additionalProperties: { type: "string" },
      }),
      "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
    ],
    [
      "with a type in a combination",
      within({ type: "string", anyOf: [{ type: "string" }] }),
      "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
    ],
    [
      "with a property only in a combination",
      { type: "object", oneOf: [{ properties: { b: { minimum: 1 } } }] },
      "s.properties[b]: Required value: because it is defined in s.oneOf[0].properties[b]",
    ],
    [
      "with a default that is not valid",
      within({ type: "integer", default: "x" }),
      's.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"',
    ],
    [
      "with a map list without keys",
      within({ type: "array", "x-kubernetes-list-type": "map", items: { type: "object" } }),
      "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
    ],
    [
      "that says what metadata is",
      {
        type: "object",
        properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } },
      },
      "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
    ],
  ];
  it.each(cases)("%s", (_name, of, problem) => {
    expect(structuralProblems(of, "s").map((p) => `${p.field}: ${p.message}`)).toContain(problem);
  });

  it("reports invalid patterns, and ends however deep the schema is", () => {
    const [problem] = structuralProblems(within({ type: "string", pattern: "(" }), "s");
    expect(problem?.field).toBe("s.properties[a].pattern");
    let deep: CustomSchema = { type: "string" };
    for (let i = 0; i < 5000; i++) deep = { type: "object", properties: { a: deep } };
    expect(structuralProblems(deep, "s").at(-1)?.message).toContain("nested more than");
  });
});

describe("values", () => {
  const problemsOf = (given: unknown, of: CustomSchema, typedCauses = false) =>
    validateValue(given, of, { typedCauses, itemPaths: true }, "v").map(
      (p) => `${p.reason} ${p.field}: ${p.message}`,
    );

  const cases: readonly (readonly [CustomSchema, unknown, readonly string[]])[] = [
    [{ type: "number" }, 1, []],
    [
      { type: "integer" },
      1.5,
      ['FieldValueInvalid v: Invalid value: "number": v in body must be of type integer: "number"'],
    ],
    [
      { type: "string" },
      null,
      ['FieldValueInvalid v: Invalid value: "null": v in body must be of type string: "null"'],
    ],
    [{ type: "string", nullable: true }, null, []],
    [{ "x-kubernetes-int-or-string": true }, "50%", []],
    [
      { "x-kubernetes-int-or-string": true },
      true,
      ['FieldValueInvalid v: Invalid value: "boolean": v in body must be of type integer,string: "boolean"'],
    ],
    [
      { type: "string", maxLength: 2 },
      "äöü",
      ['FieldValueInvalid v: Invalid value: "äöü": v in body should be at most 2 chars long'],
    ],
    [{ type: "string", maxLength: 2 }, "😀😀", []],
    [
      { type: "string", format: "ipv4" },
      "1.2.3",
      ['FieldValueInvalid v: Invalid value: "1.2.3": v in body must be of type ipv4: "1.2.3"'],
    ],
    [{ type: "string", format: "whatever" }, "x", []],
    [
      { type: "integer", minimum: 1, exclusiveMinimum: true },
      1,
      ["FieldValueInvalid v: Invalid value: 1: v in body should be greater than 1"],
    ],
    [{ type: "number", multipleOf: 0.1 }, 0.3, []],
    [
      { type: "integer", multipleOf: 2 },
      3,
      ["FieldValueInvalid v: Invalid value: 3: v in body should be a multiple of 2"],
    ],
    [
      { type: "object", minProperties: 1 },
      {},
      ["FieldValueInvalid v: Invalid value: 0: v in body should have at least 1 properties"],
    ],
    [
      { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] },
      { a: 1, b: 1 },
      [
        'FieldValueInvalid <nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    ],
    [
      { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      {},
      [
        'FieldValueInvalid <nil>: Invalid value: "": "v" must validate at least one schema (anyOf)',
        "FieldValueRequired v.a: Required value",
      ],
    ],
    [
      { type: "string", not: { enum: ["no"] } },
      "no",
      ['FieldValueInvalid <nil>: Invalid value: "": "v" must not validate the schema (not)'],
    ],
  ];
  it.each(cases)("%j of %j", (of, given, problems) => {
    expect(problemsOf(given, of)).toEqual(problems);
  });

  it("are reported with specific reasons in newer versions", () => {
    expect(problemsOf("abc", { type: "string", maxLength: 2 }, true)[0]).toMatch(
      /^FieldValueTooLong v: Too long/,
    );
    expect(problemsOf([1, 2], { type: "array", maxItems: 1 }, true)).toEqual([
      "FieldValueTooMany v: Too many: 2: must have at most 1 items",
    ]);
    expect(problemsOf(1, { type: "string" }, true)[0]).toMatch(/^FieldValueTypeInvalid/);
  });

  it("cannot hold the server up with a clever pattern", () => {
    const problems = problemsOf(`${"a".repeat(50_000)}!`, { type: "string", pattern: "^(a+)+$" });
    expect(problems).toHaveLength(1);
  });
});
