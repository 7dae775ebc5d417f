import { describe, expect, it } from "vitest";
import { type DemoReport, isProof } from "./demo-report.ts";

const plugin = "aws-ebs";
const counts = {
  plugin,
  inTreeCallsAfterMigration: 0,
  csiCallsAfterMigration: 3,
  listingsOfRestarts: 0,
} as const;
const volume = {
  plugin,
  pv: "pv",
  inTreeHandle: "a",
  csiHandle: "b",
  nodes: ["n"],
  acknowledgedWrites: 5,
} as const;
const good: DemoReport = {
  acknowledgedWrites: 10,
  lostWrites: 0,
  volumes: [volume, volume],
  steps: [],
  inTreeCallsAfterMigration: 0,
  csiCallsAfterMigration: 3,
  plugins: [counts],
  strandedAttachments: 0,
  elapsedMs: 1,
};

describe("isProof", () => {
  it("accepts a run in which all was tried and nothing went wrong", () => {
    expect(isProof(good)).toBe(true);
  });
  it.each<Partial<DemoReport>>([
    { lostWrites: 1 },
    { strandedAttachments: 1 },
    { inTreeCallsAfterMigration: 1 },
    { acknowledgedWrites: 0 },
    { volumes: [] },
    { volumes: [volume, { ...volume, acknowledgedWrites: 0 }] },
    { plugins: [] },
    { plugins: [counts, { ...counts, plugin: "rbd", csiCallsAfterMigration: 0 }] },
  ])("refuses %j", (wrong) => {
    expect(isProof({ ...good, ...wrong })).toBe(false);
  });
});
