import { it } from "vitest";
import { crossWithSeeds } from "./testing/crossing-seeds.ts";

it("keeps the contract over many odd seeds of crashes and lost replies", { timeout: 900_000 }, () =>
  crossWithSeeds(1),
);
