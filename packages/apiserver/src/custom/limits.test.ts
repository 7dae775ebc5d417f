/** What schemas, paths and patterns ask of an object grows with their size, and has an end: by counts, not by time. */
import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CustomSchema } from "../api/custom-schema.ts";
import { many, members } from "../testing/heavy-requests/heavy-request.ts";
import { isWhole, memberPath, pathWithin } from "./add-problems.ts";
import { hasFormat } from "./formats.ts";
import { firstValueAt, jsonPathProblem } from "./json-path.ts";
import { patternProblem, patternSteps, writtenOutSize } from "./pattern-matches.ts";
import { structuralProblems } from "./structural-problems.ts";
import { Correlation, unchangedProblems } from "./unchanged-problems.ts";
import { validateValue, workMax } from "./validate-value.ts";
import { withDefaults } from "./with-defaults.ts";

const words = { typedCauses: true, itemPaths: true };

/** The work that the validation takes, and the problems it reports. */
function validated(value: unknown, schema: CustomSchema) {
  const work = { left: workMax };
  const problems = validateValue(value, schema, words, "v", work);
  return { steps: workMax - work.left, problems };
}

describe("the work of a schema", () => {
  const schemas: readonly (readonly [string, (size: number) => readonly [unknown, CustomSchema]])[] = [
    ["items", (n) => [many(n, (i) => i), { type: "array", items: { type: "integer" } }]],
    [
      "known values",
      (n) => [
        many(n, (i) => `k${i}`),
        { type: "array", items: { type: "string", enum: many(n, (i) => `k${i}`) } },
      ],
    ],
    [
      "members",
      (n) => [
        members(n, (i) => [`k${i}`, "v"]),
        { type: "object", additionalProperties: { type: "string" } },
      ],
    ],
    ["a pattern", (n) => ["a".repeat(n), { type: "string", pattern: "^(a+)+$" }]],
    ["problems", (n) => [many(n, () => "x"), { type: "array", items: { type: "integer" } }]],
  ];
  it.each(schemas)("grows with %s", (_name, make) => {
    const steps = (size: number) => validated(...make(size)).steps;
    expect(steps(4000) / steps(1000)).toBeLessThan(5);
    expect(steps(4000)).toBeGreaterThan(500);
  });

  it.each<readonly [string, unknown, CustomSchema]>([
    [
      "alternatives",
      many(3000, (i) => i),
      { type: "array", items: { anyOf: many(3000, (i) => ({ minimum: 10_000 + i })) } },
    ],
    [
      "required members",
      many(10_000, () => ({})),
      { type: "array", items: { type: "object", required: many(10_000, (i) => `m${i}`) } },
    ],
    ["a pattern of many parts", "ab".repeat(50_000), { type: "string", pattern: "(?:[ab]?){900}[cd]" }],
    [
      "keys of items",
      many(10_000, () => ({})),
      {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": many(10_000, (i) => `k${i}`),
      },
    ],
  ])("has an end: %s", (_name, value, schema) => {
    const { problems } = validated(value, schema);
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining("it is too large, or its schema is, to be validated"),
    ]);
  });

  it("finds the values that are known, of every type", () => {
    const schema = { enum: ["1", 1, true, null, { a: 1, b: [2] }] };
    for (const value of ["1", 1, true, { b: [2], a: 1 }])
      expect(validated(value, schema).problems).toEqual([]);
    for (const value of ["true", 2, false, { a: 1 }, "null"]) {
      expect(validated(value, schema).problems).toHaveLength(1);
    }
  });

  it("does not add defaults without end", () => {
    const schema: CustomSchema = {
      type: "array",
      items: {
        type: "object",
        properties: members(1000, (i) => [`m${i}`, { type: "string", default: "x" }]),
      },
    };
    expect(
      withDefaults(
        many(10, () => ({})),
        schema,
      ),
    ).toHaveLength(10);
    expect(() =>
      withDefaults(
        many(1000, () => ({})),
        schema,
      ),
    ).toThrow("defaults of its schema would add more");
  });

  it("holds of texts that nearly have a format", () => {
    expect(hasFormat("duration", "1h2.5s")).toBe(true);
    // Each digit once: any other way of reading them would take until tomorrow.
    expect(hasFormat("duration", "1".repeat(1_000_000))).toBe(false);
  });
});

describe("problems", () => {
  it("are at paths that are not longer than can be read", () => {
    expect(memberPath("", "a")).toBe("a");
    expect(memberPath("a[1]", "b")).toBe("a[1].b");
    const long = pathWithin(memberPath("", "a".repeat(1_000_000)), "[1]");
    expect(long.length).toBeLessThan(5000);
    expect(isWhole(long)).toBe(false);
    expect(isWhole("a.b[1]")).toBe(true);
  });

  it("of a definition begin with patterns that are too much to compile", () => {
    const schema = (count: number): CustomSchema => ({
      type: "object",
      properties: members(count, (i) => [`p${i}`, { type: "string", pattern: `^[a-z]{1,900}${i}$` }]),
    });
    expect(structuralProblems(schema(3), "s")).toEqual([]);
    expect(structuralProblems(schema(1000), "s").map(({ message }) => message)).toEqual([
      expect.stringContaining("the patterns of a schema must have at most 200000 parts"),
    ]);
  });

  it("of a definition end with defaults that are too much to validate", () => {
    const item: CustomSchema = { type: "integer", anyOf: many(2000, (i) => ({ minimum: -i })) };
    const list = { type: "array", items: item, default: many(1000, (i) => i) };
    const schema: CustomSchema = { type: "object", properties: members(10, (i) => [`p${i}`, list]) };
    const reported = structuralProblems(schema, "s").map(({ field, message }) => `${field}: ${message}`);
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(/^s\.properties\[p\d\]\.default: .*it is too large, or its schema is/);
  });

  it("of a definition are not looked for without end", () => {
    const bad = (name: string, count: number): CustomSchema => ({
      type: "object",
      properties: { [name]: { type: "object", properties: members(count, (i) => [`m${i}`, {}]) } },
    });
    expect(structuralProblems(bad("a", 5000), "s").length).toBeLessThan(1100);
    const named = structuralProblems(bad("n".repeat(1_000_000), 2000), "s");
    expect(named.reduce((sum, { field }) => sum + field.length, 0)).toBeLessThan(6_000_000);
  });
});

describe("what was there before", () => {
  it("is compared once, however many ask", () => {
    const nested = (depth: number): object => (depth === 0 ? { end: 1 } : { a: nested(depth - 1) });
    const compared = (depth: number) => {
      const correlation = new Correlation();
      let [a, b] = [nested(depth), nested(depth)] as [{ a: object }, { a: object }];
      for (let i = 0; i < depth; i++) {
        expect(correlation.isSame(a, b)).toBe(true);
        [a, b] = [a.a, b.a] as [typeof a, typeof b];
      }
      return correlation.compared;
    };
    expect(compared(400) / compared(100)).toBeLessThan(5);
  });

  it("is found by the keys of an item, whatever its place", () => {
    const schema: CustomSchema = {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: { type: "object", properties: { k: { type: "string" }, v: { type: "integer" } } },
    };
    const old = [
      { k: "a", v: 1 },
      { k: "b", v: 2 },
    ];
    const correlation = new Correlation();
    expect(correlation.itemOf({ k: "b" }, old, schema)).toBe(old[1]);
    expect(correlation.itemOf({ k: "c" }, old, schema)).toBeUndefined();
    const problem = (field: string) => ({ reason: "FieldValueInvalid", message: "", field });
    const problems = [problem("l[0].v"), problem("l[1].v"), problem(`l${".a".repeat(10_000)}`)];
    const root = { type: "object", properties: { l: schema } };
    const next = [
      { k: "b", v: 2 },
      { k: "a", v: 3 },
    ];
    expect(unchangedProblems(problems, { l: next }, { l: old }, root)).toEqual(problems.slice(1));
  });
});

describe("a JSON path", () => {
  const looked = (value: unknown, path: string) => {
    let count = 0;
    const found = firstValueAt(value, path, () => count++);
    return { found, count };
  };
  const wide = members(5000, (i) => [`k${i}`, { a: [{ type: "x", value: i }] }]);

  it.each([
    [".a.b", { a: { b: 1 } }, 1],
    ["$.a[1]", { a: [1, 2] }, 2],
    [".a[-1]", { a: [1, 2] }, 2],
    [".a[1:].b", { a: [{ b: 1 }, { b: 2 }] }, 2],
    ["..b", { a: [{ b: 3 }] }, 3],
    [".*.b", { a: { c: 1 }, d: { b: 4 } }, 4],
    [
      '.a[?(@.t=="y")].v',
      {
        a: [
          { t: "x", v: 1 },
          { t: "y", v: 2 },
        ],
      },
      2,
    ],
    [".a[?( @.v > 1 )].v", { a: [{ v: 1 }, { v: 5 }] }, 5],
    [".a[?(@['t'] != 'x')].t", { a: [{ t: "x" }, { t: "z" }] }, "z"],
    [".a[?(@.v)].v", { a: [{}, { v: 7 }] }, 7],
    [".none", {}, undefined],
  ])("%s of %j is %j", (path, value, found) => {
    expect(firstValueAt(value, path)).toEqual(found);
  });

  it("goes no further than to the first value", () => {
    expect(looked(wide, ".*.a[0].value").count).toBeLessThan(10);
    expect(looked(wide, "..value").count).toBeLessThan(10);
  });

  it("has an end, however often it begins again", () => {
    for (const path of [`${"..".repeat(20)}*.none`, `${".*".repeat(20)}..none`, '..*[?(@..none=="x")]']) {
      expect(jsonPathProblem(path)).toBeUndefined();
      const { found, count } = looked(wide, path);
      expect(found).toBeUndefined();
      expect(count).toBeLessThan(20_000);
    }
  });

  it("is not longer than can be read", () => {
    expect(jsonPathProblem(`.${"a".repeat(2000)}`)).toContain("longer than 1000 characters");
    expect(jsonPathProblem(`.a[?(@.b==${" ".repeat(900)}`)).toContain("cannot be read");
  });
});

describe("a pattern", () => {
  const { RE2JS } = createRequire(import.meta.url)("re2js") as typeof import("re2js");
  const atom = fc.constantFrom(
    "a",
    ".",
    "[a-z]",
    "[^]x[:alpha:]]",
    "\\d",
    "\\pL",
    "(?i)k",
    "\\Qa{9}\\E",
    "é",
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4, depthSize: "large" },
      atom,
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(?:${a}|${b})`),
      fc
        .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{3}", "{2,}", "{2,9}", "{0,30}", "{1,1}?"))
        .map(([a, times]) => `(${a})${times}`),
    ),
  }));

  it("is known to be as large as it will be before it is compiled", () => {
    let large = 0;
    fc.assert(
      fc.property(pattern, (text) => {
        const size = writtenOutSize(text);
        if (size > 20_000 || patternProblem(text) !== undefined) return;
        const parts = RE2JS.compile(text).programSize();
        if (parts > 100) large++;
        expect(parts).toBeLessThanOrEqual(4 * size + 4);
      }),
      { numRuns: 1000, seed: 3 },
    );
    expect(large).toBeGreaterThan(20);
  });

  it("may not be too large", () => {
    expect(patternProblem("(?:[ab]{900}c){30}")).toContain("more than 20000 parts");
    expect(patternProblem("a".repeat(10_001))).toContain("longer than 10000 characters");
    expect(
      patternProblem("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"),
    ).toBe(undefined);
    let paid = 0;
    patternProblem("never{7}before", (size) => {
      paid += size;
    });
    expect(paid).toBeGreaterThan(10);
    expect(patternSteps("a{100}", 4000) / patternSteps("a{100}", 1000)).toBeLessThan(5);
  });
});
