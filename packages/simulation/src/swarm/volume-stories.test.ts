/** What the swarm does to volumes beside those of its plugins' writers, each kind of operation alone, in a small world without faults. */
import { expect, it } from "vitest";
import { simulateWorld } from "./simulate-world.ts";
import { simulateSmallWorld } from "./small-world.ts";
import type { SwarmPlan } from "./swarm-plan.ts";

const calm = {
  nodes: 2,
  zones: 1,
  replicas: 1,
  faults: {},
  nodeDecides: true,
  rounds: 8,
} as const;

// The volumes of drivers and those of pods grow as those of the plugins' writers do.
it.each([false, true])(
  "volumes of drivers and of pods grow, migrated: %s (contract.md C3, C8)",
  (beginsMigrated) =>
    expectKept(1, {
      ...calm,
      plugins: ["aws-ebs"],
      volumes: ["ephemeral", "native"],
      beginsMigrated,
      operations: ["claimGrown", "podDeleted"],
      rounds: 12,
    }),
);

// The process that carries them dies once and goes on; in the end the operators remove what it has made, and no disk is left.
it.each(["aws-ebs", "vsphere-volume", "rbd"] as const)(
  "disks of %s that a template names itself become claims, and are named by it again (contract.md C2, C3, C8)",
  (plugin) =>
    expectKept(2, {
      ...calm,
      plugins: [plugin],
      volumes: ["inline"],
      beginsMigrated: false,
      operations: ["inlineConversion", "podDeleted"],
    }),
);

// Claim, volume and disk stay while pods use them, also when a user deletes them; with the policy Retain the disk stays for ever.
it.each([
  ["aws-ebs", false],
  ["gce-pd", true],
  ["rbd", false],
  ["azure-file", true],
] as const)(
  "claims and volumes of %s are deleted while pods use them, migrated: %s (contract.md C3, C8)",
  (plugin, beginsMigrated) =>
    expectKept(1, {
      ...calm,
      plugins: [plugin],
      volumes: [],
      beginsMigrated,
      operations: ["claimDeleted", "podDeleted"],
      rounds: 10,
    }),
);

// What was converted since the backup is there again as it was, on the same disk. The operators took it for a volume that had been given up, and
// deleted its claim (C3); and agents mounted what they attach themselves as two volumes at the same time (C1, C2).
it.each([
  [4, "aws-ebs", "conversion"],
  [2, "portworx-volume", "conversion"],
  [11, "rbd", "conversion"],
  [4, "azure-file", "inlineConversion"],
  [7, "portworx-volume", "inlineConversion"],
  [14, "rbd", "inlineConversion"],
] as const)(
  "the API server is restored from before a conversion, seed %i: %s, %s (contract.md C1, C2, C3, C8)",
  (seed, plugin, kind) =>
    expectKept(seed, {
      ...calm,
      plugins: [plugin],
      volumes: kind === "conversion" ? [] : ["inline"],
      beginsMigrated: false,
      operations: [kind, "restoredFromBackup"],
    }),
);

// The nodes had crossed to CSI since the backup: the restored Nodes listed the disks as attached in-tree, and the controller, which found no
// VolumeAttachments, asked to detach them under the mounts of CSI (C2).
it("the API server is restored from before a crossing: small world 696 (contract.md C1, C2, C8)", async () => {
  const { violations, counters } = await simulateSmallWorld({ seed: 696 });
  expect(violations).toEqual([]);
  expect(counters.restoredFromBackup).toBeGreaterThan(0);
  expect(counters.crossing).toBeGreaterThan(0);
});

// The conversion was planned while the set's pod was being made again: it knew of no workload, and its second run did not scale the set either (C8).
it("a pod takes a volume whose conversion is planned: small world 2041 (contract.md C8)", async () => {
  const { violations, counters } = await simulateSmallWorld({ seed: 2041 });
  expect(violations).toEqual([]);
  expect(counters.conversion).toBeGreaterThan(0);
});

// The pod of the backup waited to be scheduled; the claim that was made for it since was lost, and it got another volume (no fault: the claim is newer).
it("a pod gets another volume for a claim that a restore has taken: small world 2206 (contract.md C3)", async () => {
  const { violations, counters } = await simulateSmallWorld({ seed: 2206 });
  expect(violations).toEqual([]);
  expect(counters.restoredFromBackup).toBeGreaterThan(0);
});

// No controller attaches such a disk: its old path was still in use on the node, or about to be, when the conversion gave it the other (C1, C2).
it.each([21, 24, 35])(
  "a conversion of Portworx is carried back while a driver stages its volume: small world %i (contract.md C1, C2)",
  async (seed) => {
    const plan = { operations: ["conversion"], plugins: ["portworx-volume"], rounds: 5 } as const;
    const { violations, counters } = await simulateSmallWorld({ seed, plan });
    expect(violations).toEqual([]);
    expect(counters.conversion).toBeGreaterThan(0);
  },
);

// The file system of the claim grows with a pod only, and the run had scaled its workload down (C8).
it("a claim grows whose workload a conversion has scaled down: small world 33 (contract.md C8)", async () => {
  const { violations, counters } = await simulateSmallWorld({
    seed: 33,
    plan: {
      operations: [
        "conversion",
        "inlineConversion",
        "crossing",
        "podDeleted",
        "powerLoss",
        "claimGrown",
        "componentCrash",
        "restoredFromBackup",
        "nodePaused",
      ],
      rounds: 8,
    },
  });
  expect(violations).toEqual([]);
  expect(counters.claimGrown).toBeGreaterThan(0);
});

async function expectKept(seed: number, plan: SwarmPlan): Promise<void> {
  const { violations, counters, acknowledgedWrites } = await simulateWorld({ seed, plan });
  expect(violations).toEqual([]);
  for (const kind of [...plan.operations, ...plan.volumes]) expect(counters[kind], kind).toBeGreaterThan(0);
  expect(acknowledgedWrites).toBeGreaterThan(0);
}
