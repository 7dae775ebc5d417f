import { describe, expect, test } from "vitest";
import { randomContract } from "./random.contract.ts";
import { type Random, SeededRandom, systemRandom } from "./random.ts";

randomContract("real", () => systemRandom);
randomContract("virtual", () => new SeededRandom(42));

describe("seeded random", () => {
  const draws = (random: Random) => Array.from({ length: 20 }, () => random.below(1000, "test"));

  test("the same seed and labels give the same draws, others give others", () => {
    expect(draws(new SeededRandom(1))).toEqual(draws(new SeededRandom(1)));
    expect(draws(new SeededRandom(1).fork("a"))).toEqual(draws(new SeededRandom(1).fork("a")));
    expect(draws(new SeededRandom(1))).not.toEqual(draws(new SeededRandom(2)));
    expect(draws(new SeededRandom(1).fork("a"))).not.toEqual(draws(new SeededRandom(1).fork("b")));
  });

  test("drawing more from one stream leaves the others as they were", () => {
    const [quiet, busy] = [new SeededRandom(1), new SeededRandom(1)];
    draws(busy);
    draws(busy.fork("x"));
    expect(draws(busy.fork("a"))).toEqual(draws(quiet.fork("a")));
  });

  test("the draws are the same in every version: seeds in bug reports stay good", () => {
    const random = new SeededRandom(2026);
    expect([random.below(1000, "a"), random.below(1000, "b"), random.uuid("c")]).toMatchInlineSnapshot(`
      [
        455,
        308,
        "a9419d56-9e54-4454-a6fb-d42938cab922",
      ]
    `);
  });
});
