import { describe, expect, it } from "vitest";
import { simulateCrossing } from "./simulate-crossing.ts";

describe("a simulated crossing", () => {
  it("keeps the contract when nothing fails, and takes its time on the virtual clock only (contract.md C1, C8)", async () => {
    const result = await simulateCrossing({
      seed: 1,
      crashes: false,
      cloud: "faultFree",
      rates: { lostRequest: 0, lostReply: 0, delay: 0, delayMsMax: 1 },
    });
    expect(result.violations).toEqual([]);
    expect(result.acknowledgedWrites).toBeGreaterThan(0);
  });

  it("gives the same trace for the same seed", async () => {
    const [first, second] = [await simulateCrossing({ seed: 7 }), await simulateCrossing({ seed: 7 })];
    expect(second).toEqual(first);
    expect((await simulateCrossing({ seed: 8 })).traceHash).not.toBe(first.traceHash);
  });

  // A sample; crossing-seeds-*.exhaustive.test.ts have many more.
  it("keeps the contract over some seeds of crashes and lost replies (contract.md C1, C2, C3)", {
    timeout: 120_000,
  }, async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const result = await simulateCrossing({ seed });
      expect(result.violations, `replay with: longshore sim --seed ${seed}`).toEqual([]);
    }
  });
});
