import { it } from "vitest";
import { playSmallWorlds } from "../testing/small-seeds.ts";

it("keeps the contract in small worlds of many odd seeds (contract.md C1 to C8)", () => playSmallWorlds(1));
