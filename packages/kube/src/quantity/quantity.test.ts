import fc from "fast-check";
import { expect, test } from "vitest";
import { formatBytes, parseQuantity, QuantityError } from "./quantity.ts";

test.each([
  ["10Gi", 10n * 2n ** 30n],
  ["1.5Gi", 3n * 2n ** 29n],
  ["100m", 1n],
  ["1e3", 1000n],
  ["0", 0n],
  ["9007199254740993", 9007199254740993n],
  ["500E", 500n * 10n ** 18n],
])("%s is %d bytes", (text, bytes) => {
  expect(parseQuantity(text).toBytes()).toBe(bytes);
});

test.each(["", " ", "1 Gi", "1GB", "Gig", "1e", "0x10", "1e99999999999"])("%j is refused by name", (text) => {
  expect(() => parseQuantity(text)).toThrow(QuantityError);
  expect(() => parseQuantity(text)).toThrow(`"${text}"`);
});

test("what is too large for a suffix keeps its value", () => {
  const quantity = parseQuantity("1000E");
  expect(parseQuantity(quantity.toString()).equals(quantity)).toBe(true);
});

test("bytes survive being written and read", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 62n }), (bytes) => {
      expect(parseQuantity(formatBytes(bytes)).toBytes()).toBe(bytes);
    }),
  );
});

test("adding is exact and comparing is an order", () => {
  const quantity = fc
    .tuple(fc.integer({ min: 0, max: 99_999 }), fc.constantFrom("", "m", "k", "M", "Gi", "Ti", "e4", "n"))
    .map(([digits, suffix]) => parseQuantity(`${digits}${suffix}`));
  fc.assert(
    fc.property(quantity, quantity, (a, b) => {
      const sum = a.add(b);
      expect(sum.sub(b).compare(a)).toBe(0);
      expect(a.compare(b)).toBe(-b.compare(a) || 0);
      expect(sum.compare(a)).toBe(b.sign());
    }),
  );
});

test("a quantity of thousands of digits is refused before it is converted", () => {
  expect(parseQuantity("1".repeat(1000)).toString()).toMatch(/^1{100}/);
  expect(() => parseQuantity("1".repeat(1001))).toThrow(/longer than 1000 characters/);
});
