/** Expressions pay for all they read and make: by counts, not by time. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CustomSchema } from "../api/custom-schema.ts";
import { many } from "../testing/heavy-requests/heavy-request.ts";
import {
  CelCostError,
  CostMeter,
  callCostMax,
  functionCosts,
  methodCosts,
  objectCostMax,
} from "./cel-cost.ts";
import { flattenTypes } from "./cel-types.ts";
import { compileExpression, type Expression } from "./compile-expression.ts";
import { ruleViolations } from "./rule-violations.ts";

function compiled(text: string): Expression {
  const expression = compileExpression(text);
  if (expression instanceof Error) throw expression;
  return expression;
}

const asMap = (members: object) => new Map<string, unknown>(Object.entries(members));

/** What the expression costs; errors of the expression are no matter. */
function costOf(text: string, self: object, limit = Number.POSITIVE_INFINITY): number {
  const meter = new CostMeter(limit);
  try {
    compiled(text).run({ self: asMap(self) }, meter);
  } catch (error) {
    if (error instanceof CelCostError) throw error;
  }
  return meter.used;
}

const inputs = (size: number) => ({
  s: "a".repeat(size),
  t: `${"a".repeat(size)}b`,
  l: many(size, (i) => BigInt(i)),
  ls: many(size, (i) => `item-${i % 10}`),
  m: new Map(many(size, (i) => [`k${i}`, BigInt(i)])),
});

/** Operations on a value of some size, each of which goes through it. */
const linear = [
  "self.s + self.t == self.t",
  "self.s.size() > 0",
  'self.s.startsWith("aaa")',
  'self.s.contains("b")',
  'self.s.indexOf("b") == 0',
  "self.s.lowerAscii() == self.s",
  'self.s.replace("a", "bc") == self.s',
  'self.s.split("a").size() > 0',
  "self.s.reverse() == self.s",
  "self.s.substring(1) == self.s",
  "bytes(self.s) == bytes(self.t)",
  'self.s.matches("a+b")',
  'self.s.find("b") == ""',
  "self.s + self.t == self.t + self.s",
  "self.s < self.t",
  "self.l + self.l == self.l",
  "self.l == self.l + []",
  "-1 in self.l",
  "self.l.indexOf(-1) == 0",
  "self.l.sum() == 0",
  "self.ls.isSorted()",
  "self.ls.join(self.ls[0]).size() > 0",
  "self.l.all(x, x >= 0)",
  "self.l.exists(x, x < 0)",
  "self.l.exists_one(x, x == 1)",
  "self.l.map(x, x + 1) == self.l",
  "self.l.filter(x, x > 1).size() > 0",
  "self.l.all(x, self.l[-1] == 1 || true)",
  "self.m.all(k, self.m[k] >= 0)",
  "self.m.map(k, k).size() > 0",
  "isURL(self.s)",
];

describe("an expression", () => {
  it.each(linear)("%s costs in proportion to its input", (text) => {
    const [small, large] = [1000, 4000].map((size) => costOf(text, inputs(size)));
    expect((large as number) / (small as number)).toBeLessThan(5);
    // No less than a unit for ten characters.
    expect(large).toBeGreaterThan(400);
  });

  it.each([
    ["macros within one another", "self.l.all(a, self.l.all(b, self.l.all(c, true)))"],
    ["a text that doubles", `[self.s]${".map(x, x + x)".repeat(40)}.size() > 0`],
    ["a list that doubles", `[self.l]${".map(x, x + x)".repeat(40)}.size() > 0`],
    ["a text that is replaced by itself", `[self.s]${'.map(x, x.replace("a", x))'.repeat(10)}.size() > 0`],
    ["texts that are joined by themselves", `[self.s]${".map(x, [x, x, x].join(x))".repeat(40)}.size() > 0`],
    [
      "values that share their parts",
      `[self.l]${".map(x, dyn([x, x]))".repeat(40)} == [self.l + []]${".map(x, dyn([x, x]))".repeat(40)}`,
    ],
    ["errors that are caught", "self.l.exists(a, self.l.exists(b, self.l[-1] == a))"],
    ["constants in a loop", `self.l.all(a, self.l.all(b, true${" && true".repeat(500)}))`],
    ["a pattern of many parts", 'self.l.exists(a, self.t.matches("(?:[ab]?){900}[cd]"))'],
    ["a pattern that is looked for everywhere", 'self.l.all(a, self.s.findAll("a.*c|a").size() > 0)'],
    ["time zones", 'self.l.all(a, timestamp(a).getHours("Europe/Berlin") >= 0)'],
    ["members of a map", "self.l.all(a, self.m.exists(k, true))"],
  ])("ends by its cost: %s", (_name, text) => {
    expect(() => costOf(text, inputs(2000), callCostMax)).toThrow(CelCostError);
  });

  it.each(["self.l", "[self.l]", "self.m"])("cannot have %s as a key, which would be written out", (key) => {
    const why = /unsupported key type|no such overload/;
    for (const text of [`{${key}: 1}.size() > 0`, `{"a": 1}[${key}] == 1`, `${key} in {"a": 1}`]) {
      expect(() => compiled(text).run({ self: asMap(inputs(3)) }, new CostMeter(1000))).toThrow(why);
    }
  });

  it("cannot have lists put in order, which would be written out", () => {
    expect(() => compiled("[[1], [2]].isSorted()").run({ self: null }, new CostMeter(1000))).toThrow(
      "no such overload",
    );
  });

  it("may call only what has a price", () => {
    expect(compileExpression('b"{}".json().size() == 0')).toEqual(
      new Error("undeclared reference to 'json'"),
    );
    expect(compileExpression('"a".matchesRe2("a")')).toBeInstanceOf(Error);
    expect(functionCosts.has("json") || methodCosts.has("hex")).toBe(false);
  });

  it.each([
    "self.l.all(x, x >= 0)",
    "self.l.map(x, self.l.map(y, x)).size() > 0",
    "self.l.exists(x, x == -1)",
    "cel.bind(v, self.l, v.size() > 0)",
    "self.l.all(x, self.none == x)",
  ])("keeps nothing of the object: %s", async (text) => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const expression = compiled(text);
    const run = () => {
      const self = asMap({ l: many(10, (i) => BigInt(i)) });
      try {
        expression.run({ self }, new CostMeter(callCostMax));
      } catch {
        // That a member is missing is what the last one is about.
      }
      return new WeakRef(self);
    };
    const kept = run();
    // What a reference has been asked for stays until the end of the turn.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(kept.deref()).toBeUndefined();
  });

  it("has no type that is nested: types are kept for ever", () => {
    expect(compiled("[1]").type).toBe("list<int>");
    for (const text of ["[[1]]", "[[[1]]]", 'self.l.map(x, [x]).map(x, {"a": x})']) {
      expect(compiled(text).type).toBe("list");
    }
    expect(
      compiled('{"a": [1]}["a"][0] == 1 && [[1, 2], [3]][1][0] == 3').run(
        { self: null },
        new CostMeter(1000),
      ),
    ).toBe(true);
  });

  it("is not run by a library that cannot be metered", () => {
    expect(() => flattenTypes({})).toThrow("another version");
  });
});

/** Characters and items of the value that are not of the input; what is shared counts once. */
function sizeMade(value: unknown, known: Set<unknown>): number {
  if (typeof value !== "string" && !Array.isArray(value)) return 0;
  if (known.has(value)) return 0;
  known.add(value);
  if (typeof value === "string") return value.length;
  return value.reduce<number>((sum, item) => sum + sizeMade(item, known), value.length);
}

const { list } = fc.letrec<{ text: string; list: string; truth: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 5, depthSize: "large" },
    fc.constantFrom("self.s", "self.t", '"ab"', '""'),
    fc.tuple(tie("text"), tie("text")).map(([a, b]) => `(${a} + ${b})`),
    fc.tuple(tie("text"), tie("text"), tie("text")).map(([a, b, c]) => `${a}.replace(${b}, ${c})`),
    fc.tuple(tie("list"), tie("text")).map(([a, b]) => `${a}.join(${b})`),
    fc.tuple(tie("text"), tie("text")).map(([a, b]) => `cel.bind(v, ${a}, v + ${b} + v)`),
    fc.tuple(tie("truth"), tie("text"), tie("text")).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    tie("text").map((a) => `${a}.upperAscii().reverse()`),
  ),
  list: fc.oneof(
    { maxDepth: 5, depthSize: "large" },
    fc.constantFrom("self.ls", '["a", "b"]'),
    fc.tuple(tie("list"), tie("list")).map(([a, b]) => `(${a} + ${b})`),
    fc.tuple(tie("text"), tie("text")).map(([a, b]) => `${a}.split(${b})`),
    fc.tuple(tie("list"), tie("text")).map(([a, b]) => `${a}.map(x, x + ${b})`),
    fc.tuple(tie("list"), tie("truth")).map(([a, b]) => `${a}.filter(x, ${b})`),
    tie("text").map((a) => `${a}.findAll("a|b")`),
  ),
  truth: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom("true", 'self.s == "x"'),
    fc.tuple(tie("text"), tie("text")).map(([a, b]) => `${a}.contains(${b})`),
    fc.tuple(tie("text"), tie("list")).map(([a, b]) => `(${a} in ${b})`),
    fc.tuple(tie("list"), tie("truth")).map(([a, b]) => `${a}.exists(y, ${b})`),
    fc.tuple(tie("list"), tie("list")).map(([a, b]) => `(${a} == ${b})`),
    fc.tuple(tie("truth"), tie("truth")).map(([a, b]) => `(${a} || ${b})`),
  ),
}));

describe("any expression", () => {
  it("pays for what it makes, or makes it not", () => {
    const outcomes = { made: 0, refused: 0 };
    fc.assert(
      fc.property(
        list,
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 100, max: 200_000 }),
        (text, size, limit) => {
          const input = inputs(size);
          const { s, t, ls } = input;
          const expression = compileExpression(text);
          if (expression instanceof Error) return;
          const meter = new CostMeter(limit);
          try {
            const value = expression.run({ self: asMap(input) }, meter);
            const known = new Set<unknown>([s, t, ls, ...ls]);
            expect(sizeMade(value, known)).toBeLessThanOrEqual(10 * meter.used);
            expect(meter.used).toBeLessThanOrEqual(limit);
            outcomes.made++;
          } catch (error) {
            if (!(error instanceof CelCostError)) throw error;
            expect(meter.isExceeded).toBe(true);
            outcomes.refused++;
          }
        },
      ),
      { numRuns: 1500, seed: 11 },
    );
    expect(outcomes.made).toBeGreaterThan(200);
    expect(outcomes.refused).toBeGreaterThan(50);
  });
});

describe("the rules of an object", () => {
  const list: CustomSchema = { type: "array", items: { type: "integer" } };
  const violations = (rules: readonly object[], items: number) =>
    ruleViolations(
      { spec: many(items, (i) => i) },
      undefined,
      {
        type: "object",
        properties: { spec: { ...list, "x-kubernetes-validations": rules } },
      } as CustomSchema,
      { ratchets: false },
    ).map(({ field, message }) => `${field}: ${message}`);
  const square = "self.all(a, self.all(b, a + b >= 0))";

  it("end with the first that costs too much by itself", () => {
    const broken = { rule: "self.size() == 0", message: "not empty" };
    expect(violations([broken, { rule: square }, broken], 1000)).toEqual([
      'spec: Invalid value: "array": not empty',
      `spec: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${square}`,
    ]);
  });

  it("end when they cost too much together", () => {
    const each = costOf("self.l.all(a, self.l.all(b, a + b >= 0))", inputs(300));
    expect(each).toBeLessThan(callCostMax);
    expect(
      violations(
        many(3, () => ({ rule: square })),
        300,
      ),
    ).toEqual([]);
    expect(
      violations(
        many(Math.ceil(objectCostMax / each) * 2, () => ({ rule: square })),
        300,
      ),
    ).toEqual([
      'spec: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run',
    ]);
  });

  it("end with a message that costs too much", () => {
    const messageExpression = `[string(self)]${".map(x, x + x)".repeat(3)}[0]`;
    const endless = `self.map(a, self.map(b, self.map(c, "x").join()).join()).join()`;
    expect(
      violations(
        [
          { rule: "false", messageExpression },
          { rule: "false", messageExpression: endless },
        ],
        300,
      ),
    ).toEqual([
      'spec: Invalid value: "array": failed rule: false',
      `spec: Invalid value: "array": no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(endless)}`,
    ]);
  });
});
