import { describe, expect, it } from "vitest";
import { simulateConversion } from "./simulate-conversion.ts";

describe("a simulated conversion and its undo", () => {
  it("carries every volume when nothing fails", async () => {
    const rates = { lostRequest: 0, lostReply: 0, delay: 0, delayMsMax: 1 };
    const result = await simulateConversion({ seed: 1, crashes: false, rates });
    expect(result).toMatchObject({ violations: [], crashes: 0, deaths: 0, faults: 0 });
  });

  it("is the same for the same seed", async () => {
    const [first, second] = [await simulateConversion({ seed: 3 }), await simulateConversion({ seed: 3 })];
    expect(second).toEqual(first);
    expect(first.deaths).toBeGreaterThan(0);
    expect(first.struck.length).toBeGreaterThan(0);
  });

  it("is without the faults, crashes and deaths that it is not let have", async () => {
    const { struck, ...result } = await simulateConversion({ seed: 3, only: new Set() });
    expect(struck).toEqual([]);
    expect(result).toMatchObject({ violations: [], crashes: 0, deaths: 0, faults: 0 });
  });

  // As many seeds as `LONGSHORE_CONVERSION_SEEDS` says.
  const seeds = Number(process.env.LONGSHORE_CONVERSION_SEEDS ?? "8");
  it("keeps the contract over seeds of crashes, deaths and lost replies (contract.md C1 to C4)", {
    timeout: 1_800_000,
  }, async () => {
    let deaths = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const result = await simulateConversion({ seed });
      expect(result.violations, `seed ${seed}`).toEqual([]);
      deaths += result.deaths;
    }
    expect(deaths).toBeGreaterThan(seeds);
  });
});
