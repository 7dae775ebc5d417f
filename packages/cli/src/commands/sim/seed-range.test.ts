import { expect, it } from "vitest";
import { seedRange, shares } from "./seed-range.ts";

it.each([
  [undefined, "1", { first: 1, last: 1 }],
  ["7", "3", { first: 7, last: 9 }],
  [undefined, "200..205", { first: 200, last: 205 }],
  [undefined, "5..5", { first: 5, last: 5 }],
])("--seed %s --seeds %s", (seed, seeds, range) => {
  expect(seedRange(seed, seeds)).toEqual(range);
});

it.each([
  [undefined, "9..2", '--seeds: "2" is not a whole number from 9'],
  [undefined, "..4", '--seeds: "" is not a whole number'],
  [undefined, "1..2..3", "is not a range"],
  ["4", "1..2", "leave one of them out"],
  [undefined, "0", "is not a whole number from 1"],
])("--seed %s --seeds %s is refused", (seed, seeds, words) => {
  expect(() => seedRange(seed, seeds)).toThrow(words);
});

it("shares every seed out once, in parts that keep all workers at work", () => {
  const parts = shares({ first: 10, last: 130 }, 2);
  const seeds = parts.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  expect(seeds).toEqual(Array.from({ length: 121 }, (_, i) => 10 + i));
  expect(parts).toHaveLength(3);
  expect(shares({ first: 1, last: 3 }, 8)).toHaveLength(3);
});
