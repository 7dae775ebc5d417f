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

  it("keeps the contract under each operation and fault of the control plane, and says what was reached", async () => {
    const operations = [
      "leaderPaused",
      "zoneOutage",
      "driversRemoved",
      "registrationLost",
      "versionChange",
      "conversion",
    ] as const;
    const faults = { watchLag: 30, deathAtCall: 30, driverDeath: 100 };
    const results = [1, 2, 3].map((seed) =>
      simulateWorld({ seed, plan: { ...plan, zones: 1, volumes: [], faults, operations, rounds: 12 } }),
    );
    const played = await Promise.all(results);
    expect(played.flatMap(({ violations }) => violations)).toEqual([]);
    const { never, steps, crashPoints } = coverage(played);
    for (const kind of [...operations, ...Object.keys(faults)]) expect(never).not.toContain(kind);
    expect(steps.reached).toBeGreaterThan(50);
    expect(steps.never).toContain("node_volumes: mapForPod");
    expect(crashPoints.reached).toBeGreaterThan(0);
    expect(crashPoints.of).toBeGreaterThan(crashPoints.reached);
  });

  it("is without the faults and operations that it is not let have", async () => {
    const result = await simulateWorld({ seed: 7, plan, only: new Set() });
    expect(result.struck).toEqual([]);
    expect(result.counters).toEqual({});
    expect(result.violations).toEqual([]);
    expect(result.acknowledgedWrites).toBeGreaterThan(0);
  });
});

describe("a world of the swarm whose API server is restored from backups", { timeout: 120_000 }, () => {
  it.each([
    ["crossings", ["crossing", "podDeleted"]],
    ["flips of gates", ["gateFlip", "podDeleted"]],
  ] as const)(
    "comes to rest with the contract held, with %s: nodes that run on say again which path their volumes take",
    async (_what, others) => {
      const operations = [...others, "restoredFromBackup"] as const;
      const nodeDecides = others[0] === "gateFlip";
      const results = [1, 2, 3].map((seed) =>
        simulateWorld({
          seed,
          plan: { ...plan, zones: 1, replicas: 2, nodeDecides, faults: {}, operations, rounds: 8 },
        }),
      );
      const played = await Promise.all(results);
      expect(played.flatMap(({ violations }) => violations)).toEqual([]);
      const { never } = coverage(played);
      for (const kind of operations) expect(never).not.toContain(kind);
    },
  );
});

describe("a world of the swarm with a Flexvolume driver", { timeout: 120_000 }, () => {
  it("comes to rest with the contract held while drivers are removed, replaced and their callers die (flexvolume.md 8)", async () => {
    const operations = [
      "flexDriverChanged",
      "podDeleted",
      "powerLoss",
      "leaderPaused",
      "nodeReplaced",
    ] as const;
    const faults = { deathAtCall: 30, cloudSlow: 100, cloudLate: 100, mountFailure: 30 };
    const results = [1, 2, 3, 4].map((seed) =>
      simulateWorld({
        seed,
        plan: { ...plan, zones: 1, volumes: ["flexvolume"], faults, operations, rounds: 8 },
      }),
    );
    const played = await Promise.all(results);
    expect(played.flatMap(({ violations }) => violations)).toEqual([]);
    const { never, counts } = coverage(played);
    for (const kind of [...operations, ...Object.keys(faults)]) expect(never).not.toContain(kind);
    expect(counts.flexvolume).toBe(played.length);
  });
});
