/** What the swarm has found where nodes come, go and are wrong: each kind of operation alone, in a small world without faults. */
import { expect, it } from "vitest";
import { simulateWorld } from "./simulate-world.ts";
import { simulateSmallWorld } from "./small-world.ts";
import type { SwarmPlan } from "./swarm-plan.ts";

const calm = {
  nodes: 3,
  zones: 1,
  replicas: 1,
  volumes: [],
  faults: {},
  nodeDecides: true,
  rounds: 3,
} as const;

/** Forced plans of small worlds, by an operation that stops something. */
const stopped: Readonly<Record<"nodePaused" | "leaderPaused", Partial<SwarmPlan>>> = {
  nodePaused: {
    rounds: 4,
    operations: [
      "nodePaused",
      "clockJump",
      "nodeDeleted",
      "nodeReplaced",
      "outOfService",
      "claimGrown",
      "snapshotRestored",
    ],
  },
  leaderPaused: {
    rounds: 6,
    volumes: ["flexvolume"],
    operations: [
      "flexDriverChanged",
      "leaderPaused",
      "componentCrash",
      "componentRestart",
      "powerLoss",
      "podDeleted",
      "drain",
      "nodeReplaced",
      "nodePaused",
      "outOfService",
      "nodeDeleted",
      "zoneOutage",
      "crossing",
      "scale",
    ],
  },
};

// A Node was deleted while its agent runs. The agent made the Node again, but not its CSINode, so nothing was ever detached there
// (C8). Started again, it let a driver make the CSINode without the annotation, so that volumes in use by CSI counted as in-tree (C1).
it.each(["rbd", "gce-pd"] as const)(
  "a Node is deleted while its agent runs, with migrated volumes of %s (contract.md C1, C2, C8)",
  (plugin) =>
    expectKept(2, { ...calm, plugins: [plugin], beginsMigrated: true, operations: ["nodeDeleted"] }),
);

// A Node that was made again named no volume in use before its CSINode was written. A volume whose pod ended meanwhile was taken from
// under its mount (C2).
it.each([688, 1261, 1988, 2725])(
  "a Node is deleted while a pod there ends: small world %i (contract.md C2)",
  async (seed) => {
    const { violations, counters } = await simulateSmallWorld({
      seed,
      plan: { operations: ["nodeDeleted", "podDeleted"], rounds: 6 },
    });
    expect(violations).toEqual([]);
    expect(counters.nodeDeleted).toBeGreaterThan(0);
  },
);

// No controller took the pods of a Node that was deleted with its machine, so they never ran elsewhere (C8). And a controller manager
// that started after the deletion waited for the status of that Node to be written, with the volume attached for ever (C2, C8).
it.each([true, false])(
  "a machine goes for good, and its Node with it, migrated: %s (contract.md C2, C3, C8)",
  (beginsMigrated) =>
    expectKept(1, {
      ...calm,
      plugins: ["aws-ebs"],
      beginsMigrated,
      operations: ["nodeReplaced", "componentRestart"],
      rounds: 8,
    }),
);

// A crossing sees no machine that is off and whose Node is deleted. It came back with the gate that it had, after the control plane had gone
// back: nothing was attached there until the operators went the way back again (C8).
it("a machine is off, and its Node deleted, while its plugin goes the way back (contract.md C8)", () =>
  expectKept(3, {
    ...calm,
    nodes: 1,
    nodeDecides: false,
    plugins: ["aws-ebs"],
    beginsMigrated: true,
    operations: ["nodeReplaced", "crossing"],
    rounds: 4,
  }));

// Whether a node lives was decided by the time that it had written into its lease: one whose clock was ahead was ready for ever when it
// was off, and one whose clock was behind was never ready (C8).
it("clocks of nodes are wrong, and machines are out of service (contract.md C8)", () =>
  expectKept(1, {
    ...calm,
    plugins: ["aws-ebs"],
    beginsMigrated: true,
    operations: ["clockJump", "outOfService"],
    rounds: 8,
  }));

// Time alone forces no detach: a machine that is paused for more than six minutes goes on with its volumes.
it("machines are paused, also for more than six minutes (contract.md C2)", () =>
  expectKept(1, {
    ...calm,
    plugins: ["aws-ebs"],
    beginsMigrated: false,
    operations: ["nodePaused", "drain"],
  }));

// A graceful reboot syncs what a loss of power loses, and takes away mounts, devices and what the node attached by itself.
it.each([
  ["aws-ebs", true],
  ["rbd", false],
] as const)(
  "machines of %s are rebooted in order, migrated: %s (contract.md C1, C2, C3, C8)",
  (plugin, beginsMigrated) =>
    expectKept(1, {
      ...calm,
      plugins: [plugin],
      volumes: ["block", "ephemeral", "native"],
      beginsMigrated,
      operations: ["reboot", "podDeleted"],
      rounds: 8,
    }),
);

// A pod goes at once, of a node that answers, is paused or cut off. Its volume stays where the old containers may still write to it.
it.each([
  ["aws-ebs", false],
  ["gce-pd", true],
  ["rbd", false],
  ["azure-file", true],
] as const)(
  "pods of %s are deleted by force, migrated: %s (contract.md C2, C3, C8)",
  (plugin, beginsMigrated) =>
    expectKept(1, {
      ...calm,
      plugins: [plugin],
      volumes: ["block", "ephemeral"],
      beginsMigrated,
      operations: ["podForceDeleted"],
      rounds: 10,
    }),
);

// What the version before has mounted is unmounted through the socket of the one that came after it.
it.each(["aws-ebs", "rbd"] as const)(
  "the drivers of %s come back at other sockets (contract.md C2, C3, C8)",
  (plugin) =>
    expectKept(1, {
      ...calm,
      plugins: [plugin],
      volumes: ["block", "csiInline"],
      beginsMigrated: true,
      operations: ["driverUpgraded", "podDeleted"],
      rounds: 10,
    }),
);

// Who deletes a Node says that its machine is gone, unless its agent makes it again within 40 s. The agent of a machine that is paused
// cannot: volumes were taken from under its mounts (C2).
it.each([78, 117, 175])(
  "a Node is deleted, and its machine would be paused before it is made again: small world %i (contract.md C2, C8)",
  async (seed) => {
    const { violations, counters } = await simulateSmallWorld({ seed, plan: stopped.nodePaused });
    expect(violations).toEqual([]);
    expect(counters.nodeDeleted).toBeGreaterThan(0);
  },
);

// The Flexvolume driver of the control plane was missing when the volume was to be detached. The next controller manager did not know of the
// attachment, which was off the Node's list and in no record (C8).
it("a Flexvolume is about to be detached when the controller manager ends: small world 678 (contract.md C8)", async () => {
  const { violations, counters } = await simulateSmallWorld({ seed: 678, plan: stopped.leaderPaused });
  expect(violations).toEqual([]);
  expect(counters.flexDriverChanged).toBeGreaterThan(0);
});

// The agent of a node was cut off from the API server while its Node was deleted: it could not make the Node again within 40 s, and who deletes a
// Node says that its machine is gone. Such a Node is not deleted any more.
it("the agent of a node is cut off: small world 1522 (contract.md C2)", async () => {
  const { violations, counters } = await simulateSmallWorld({ seed: 1522 });
  expect(violations).toEqual([]);
  expect(counters.podForceDeleted).toBeGreaterThan(0);
});

// The list and the record of the Node were the only traces of an attached Flexvolume. The controller manager that led next knew nothing
// of it: it stayed on the machine, and its pod could have it nowhere (C8).
it.each([69, 293])(
  "a Node with a Flexvolume is deleted while the controller manager's leader is stopped: small world %i (contract.md C4, C8)",
  async (seed) => {
    const { violations, counters } = await simulateSmallWorld({ seed, plan: stopped.leaderPaused });
    expect(violations).toEqual([]);
    expect(counters.nodeDeleted).toBeGreaterThan(0);
  },
);

// The staging directory of an inline vSphere disk lay one level too deep for an agent that started: the disk was detached while it was
// staged (C2).
it("agents restart where inline vSphere disks are staged: small world 144 (contract.md C2)", async () => {
  const { zones } = calm;
  const operations = stopped.leaderPaused.operations?.filter((kind) => kind !== "flexDriverChanged") ?? [];
  const plan = { volumes: ["inline"], rounds: 6, zones, operations } as const;
  const { violations, counters } = await simulateSmallWorld({ seed: 144, plan });
  expect(violations).toEqual([]);
  expect(counters.componentCrash).toBeGreaterThan(0);
});

async function expectKept(seed: number, plan: SwarmPlan): Promise<void> {
  const { violations, counters, acknowledgedWrites } = await simulateWorld({ seed, plan });
  expect(violations).toEqual([]);
  for (const kind of plan.operations) expect(counters[kind], kind).toBeGreaterThan(0);
  expect(acknowledgedWrites).toBeGreaterThan(0);
}
