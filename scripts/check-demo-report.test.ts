import { expect, test } from "vitest";
import { faultsOf } from "./check-demo-report.ts";

const volume = (n: number) => ({
  pv: `pv-${n}`,
  inTreeHandle: `aws://zone-${n}/vol-${n}`,
  csiHandle: `vol-${n}`,
  nodes: ["node-1"],
});
const good = {
  acknowledgedWrites: 12,
  lostWrites: 0,
  volumes: [volume(1), volume(2), volume(3)],
  steps: [{ name: "cluster", ms: 900 }],
  inTreeCallsAfterMigration: 0,
  strandedAttachments: 0,
  elapsedMs: 30_000,
};

test("a good report has no faults", () => {
  expect(faultsOf(good)).toEqual([]);
});

test.each([
  [{ lostWrites: 1 }, "lostWrites is 1, not 0"],
  [{ lostWrites: undefined }, "lostWrites is undefined, not 0"],
  [{ strandedAttachments: 2 }, "strandedAttachments is 2, not 0"],
  [{ inTreeCallsAfterMigration: 1 }, "inTreeCallsAfterMigration is 1, not 0"],
  [{ acknowledgedWrites: 0 }, "acknowledgedWrites is 0"],
  [{ elapsedMs: 0 }, "elapsedMs is 0"],
  [{ steps: [] }, "steps is empty"],
  [{ volumes: [volume(1)] }, "volumes holds 1, not 3"],
  [{ volumes: [volume(1), volume(2), { ...volume(3), nodes: [] }] }, "volume pv-3 was on no node"],
])("a report with %j has a fault", (change, fault) => {
  expect(faultsOf({ ...good, ...change })).toEqual([fault]);
});

test("what is no report is said to be none", () => {
  expect(faultsOf(null)).toEqual(["the report is not an object"]);
});
