import fc from "fast-check";
import { expect, test } from "vitest";
import { formatDuration, parseBoolean, parseDuration, parseNumber, parseWhole } from "./go-values.ts";

test.each([
  ["15s", 15_000],
  ["1m30s", 90_000],
  ["1h", 3_600_000],
  ["1.5h", 5_400_000],
  [".5s", 500],
  ["2.s", 2000],
  ["500ms", 500],
  ["1m0s", 60_000],
  ["+3s", 3000],
  ["-1s", -1000],
  ["0", 0],
  ["250us", 0.25],
  ["1h2m3s4ms", 3_723_004],
])("the duration %s is %d ms", (text, ms) => {
  expect(parseDuration(text)).toBeCloseTo(ms, 9);
});

test.each(["", "15", "s", "1 s", "1d", "1s2", "1,5s", "--1s", "1e3s", ".s", "NaN", "15S"])(
  '"%s" is not a duration',
  (text) => {
    expect(() => parseDuration(text)).toThrow("write a duration such as 15s");
  },
);

test.each([
  [15_000, "15s"],
  [60_000, "1m0s"],
  [5_400_000, "1h30m0s"],
  [1500, "1.5s"],
  [500, "500ms"],
  [0, "0s"],
  [-90_000, "-1m30s"],
])("%d ms are written %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("what is written is read as the same", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), (ms) => {
      expect(parseDuration(formatDuration(ms))).toBeCloseTo(ms, 6);
    }),
  );
});

test("booleans are Go's", () => {
  expect(["1", "t", "T", "TRUE", "true", "True"].map(parseBoolean)).not.toContain(false);
  expect(["0", "f", "F", "FALSE", "false", "False"].map(parseBoolean)).not.toContain(true);
  for (const text of ["", "yes", "on", "tRUE", "2"])
    expect(() => parseBoolean(text)).toThrow("true or false");
});

test("whole numbers and numbers", () => {
  expect([parseWhole("0", 0), parseWhole("-1", -1), parseWhole("+7", 1)]).toEqual([0, -1, 7]);
  for (const text of ["", "1.5", "1e3", "0x10", "-1", "99999999999999999999"]) {
    expect(() => parseWhole(text, 0)).toThrow("whole number from 0");
  }
  expect([parseNumber("0.5"), parseNumber("1e2")]).toEqual([0.5, 100]);
  for (const text of ["", " ", "x", "Infinity", "NaN"])
    expect(() => parseNumber(text)).toThrow("write a number");
});
