import { describe, expect, it } from "vitest";
import { minimise } from "./minimise.ts";

const numbers = Array.from({ length: 200 }, (_, i) => i);
const has = (kept: readonly number[], ...needed: readonly number[]) => needed.every((n) => kept.includes(n));

describe("the fewest faults with which a run fails", () => {
  it.each([
    ["one of many", [137]],
    ["two that lie apart", [3, 190]],
    ["neighbours and one apart", [50, 51, 52, 199]],
    ["every tenth", numbers.filter((n) => n % 10 === 0)],
  ])("are found: %s", async (_what, needed) => {
    const found = await minimise(numbers, async (kept) => has(kept, ...needed), { runsMax: 5000 });
    expect(found).toMatchObject({ kept: needed, isMinimal: true });
  });

  it("are none where the run fails without any", async () => {
    expect(await minimise(numbers, async () => true)).toEqual({ kept: [], isMinimal: true, runs: 1 });
  });

  it("are such that none can be left out, where one fault hides another", async () => {
    // 7 breaks the run unless 8 happens too, which 9 makes up for.
    const fails = async (kept: readonly number[]) =>
      kept.includes(7) && (!kept.includes(8) || kept.includes(9));
    const { kept } = await minimise([7, 8, 9], fails);
    expect(kept).toEqual([7]);
  });

  it("are not said to be the fewest when the runs are used up", async () => {
    const found = await minimise(numbers, async (kept) => has(kept, 3, 190), { runsMax: 5 });
    expect(found.isMinimal).toBe(false);
    expect(has(found.kept, 3, 190)).toBe(true);
    expect(found.runs).toBeLessThanOrEqual(6);
  });
});
