/**
 * Worlds with drawn faults and operations: 15, or as many as `LONGSHORE_SWARM_SEEDS` says, from `LONGSHORE_SWARM_FIRST` on.
 */
import { expect, it } from "vitest";
import { simulateWorld } from "./simulate-world.ts";

const first = Number(process.env.LONGSHORE_SWARM_FIRST ?? "1");
const seeds = Number(process.env.LONGSHORE_SWARM_SEEDS ?? "15");

it("keeps the contract in worlds with drawn faults and operations (contract.md C1 to C8)", async () => {
  for (let seed = first; seed < first + seeds; seed++) {
    const { violations } = await simulateWorld({ seed });
    expect(violations, `seed ${seed}`).toEqual([]);
  }
});
