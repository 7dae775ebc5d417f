import { describe, expect, it } from "vitest";
import { simulateWorld } from "./simulate-world.ts";
import { coverage } from "./swarm-coverage.ts";

const plan = {
  nodes: 2,
  plugins: ["aws-ebs"],
  volumes: [],
  replicas: 1,
  nodeDecides: true,
  beginsMigrated: false,
  faults: { lostReply: 30, conflict: 100, throttled: 30 },
  operations: ["podDeleted", "powerLoss"],
  rounds: 4,
} as const;

describe("a world of the swarm", { timeout: 120_000 }, () => {
  it("is the same for the same seed, and says what has happened and what has not", async () => {
    const [one, again] = [await simulateWorld({ seed: 7, plan }), await simulateWorld({ seed: 7, plan })];
    expect(one.violations).toEqual([]);
    expect(one.struck.length).toBeGreaterThan(0);
    expect(again).toEqual(one);
    const { counts, never } = coverage([one]);
    expect(counts.lostReply).toBeGreaterThan(0);
    expect(never).toContain("gateFlip");
    expect(never).not.toContain("plugin aws-ebs");
  });

  it("is without the faults and operations that it is not let have", async () => {
    const result = await simulateWorld({ seed: 7, plan, only: new Set() });
    expect(result.struck).toEqual([]);
    expect(result.counters).toEqual({});
    expect(result.violations).toEqual([]);
    expect(result.acknowledgedWrites).toBeGreaterThan(0);
  });
});
