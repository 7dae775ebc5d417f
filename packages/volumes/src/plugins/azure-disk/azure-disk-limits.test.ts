import { expect, it } from "vitest";
import { azureDiskLimit } from "./azure-disk-limits.ts";

it.each([
  ["Standard_D2s_v3", 4],
  ["STANDARD_D4S_V3", 8],
  ["Standard_E8_v3", 16],
  ["Standard_D64s_v3", 32],
  ["Standard_F4s_v2", 8],
  ["Standard_DS1_v2", 4],
  ["Standard_D5_v2", 64],
  ["Standard_Unknown", 16],
  ["", 16],
])("a machine %j has at most %i disks", (instanceType, count) => {
  expect(azureDiskLimit(instanceType)).toBe(count);
});
