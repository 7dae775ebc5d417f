import { expect, it } from "vitest";
import { simulateCrossing } from "./simulate-crossing.ts";

const SEEDS = Number(process.env.LONGSHORE_SIM_SEEDS ?? "200");

it("keeps the contract over many seeds of crashes and lost replies", { timeout: 900_000 }, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await simulateCrossing({ seed });
    expect(result.violations, `replay with: longshore sim --seed ${seed}`).toEqual([]);
  }
});
