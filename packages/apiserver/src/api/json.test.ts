import { expect, test } from "vitest";
import { parseJson, parseTypedJson, toGoJson, toJson, WholeFraction, withoutFractions } from "./json.ts";

test.each([
  ['{"a":9007199254740993}', { a: 9007199254740993n }],
  ["[9223372036854775807,-9223372036854775808]", [9223372036854775807n, -9223372036854775808n]],
  ["9007199254740993", 9007199254740993n],
])("an integer of 64 bits survives: %s", (text, value) => {
  expect(parseJson(text)).toEqual(value);
  expect(toJson(parseJson(text))).toBe(text);
});

test.each([
  // A number of JavaScript holds it.
  ['{"a":9007199254740992}', { a: 9007199254740992 }],
  ["[1234567890123456]", [1234567890123456]],
  // Beyond 64 bits the reference rounds as well.
  ["[9223372036854775808]", [2 ** 63]],
  // No integers.
  [
    "[0.12345678901234567,1e0000000000000000,12345678901234567.5]",
    [0.12345678901234566, 1, 12345678901234568],
  ],
  // Within strings.
  [
    String.raw`{"\"9007199254740993":"\\","b":"number 9007199254740993"}`,
    { '"9007199254740993': "\\", b: "number 9007199254740993" },
  ],
])("everything else is read as ever: %s", (text, value) => {
  expect(parseJson(text)).toEqual(value);
});

test.each([
  "[01234567890123456789]",
  '{"a":--9007199254740993}',
  '"9007199254740993',
  "90071992547409939007199254740993x",
])("what is not JSON is refused: %s", (text) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test.each([
  '{"a":"number 9007199254740993","b":9007199254740993}',
  '{"a":"number 0:0","b":9007199254740993,"c":"number 1:0"}',
])("a string that looks like the mark of an integer stays a string: %s", (text) => {
  expect(toJson(parseJson(text))).toBe(text);
});

test("also where it is written with escapes", () => {
  const text = String.raw`{"a":"\u006eumber\u00200:0","b":9007199254740993}`;
  expect(parseJson(text)).toEqual({ a: "number 0:0", b: 9007199254740993n });
});

test("strings that look like marks cost time in proportion to the text", () => {
  const marks = Array.from({ length: 50_000 }, (_, index) => `"number ${index}:"`);
  const long = `"number ${"0".repeat(1_000_000)}:", "number${" ".repeat(1_000_000)}"`;
  const read = parseJson(`[${marks.join()},${long},9007199254740993]`);
  expect((read as unknown[]).at(-1)).toBe(9007199254740993n);
});

test("a whole number that is written as none is marked for types of the API", () => {
  const read = parseTypedJson('{"a":2.0,"b":[1e1,2.5,9007199254740993],"c":"2.0","d":-0.0}');
  expect(read).toEqual({
    a: new WholeFraction("2.0"),
    b: [new WholeFraction("1e1"), 2.5, 9007199254740993n],
    c: "2.0",
    d: new WholeFraction("-0.0"),
  });
  expect(withoutFractions(read)).toEqual({ a: 2, b: [10, 2.5, 9007199254740993n], c: "2.0", d: -0 });
  for (const text of ["[01.0]", "[1.0.0]", "[--1.0]", "[1.0 2.0]", "[1.]"]) {
    expect(() => parseTypedJson(text)).toThrow(SyntaxError);
  }
});

test("what is undefined is left out, in lists null", () => {
  expect(toJson({ a: undefined, b: [undefined, 9007199254740993n] })).toBe('{"b":[null,9007199254740993]}');
});

test("Go's form: sorted, escaped for HTML", () => {
  expect(toGoJson({ b: null, a: ["<&>"], 10: 1, 9: 9007199254740993n })).toBe(
    String.raw`{"10":1,"9":9007199254740993,"a":["\u003c\u0026\u003e"],"b":null}`,
  );
});
