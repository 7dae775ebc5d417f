import { it } from "vitest";
import { crossWithSeeds } from "./testing/crossing-seeds.ts";

it("keeps the contract over many odd seeds of crashes and lost replies (contract.md C1, C2, C3)", () =>
  crossWithSeeds(1));
