/**
 * C1 where a crossing meets an attach or a detach with an unknown outcome: neither path takes over a disk that
 * the other may still hold. Each scene is one cause, in the direction named; the contract is checked at every call.
 */
import { describe, expect, it } from "vitest";
import { simulateCrossing } from "./simulate-crossing.ts";
import { node, Scene } from "./testing/scene.ts";

const gatesOn = { CSIMigration: true, CSIMigrationAWS: true };
const manager = "controller-manager";
const slow = { slowChange: 1000, changeMsMax: 8_000 };
const late = { lateChange: 1000, changeMsMax: 20_000 };
const thereOnce = ["in-tree attach", "in-tree detach", "csi attach"];
const thereAndBack = [...thereOnce, "csi detach", "in-tree attach"];

async function expectOnePath(scene: Scene, effects: readonly string[]): Promise<void> {
  await scene.writerRuns();
  expect(scene.watch.violations).toEqual([]);
  expect(scene.effects).toEqual(effects);
}

/** Crosses over and leaves the writer running by CSI. */
async function overToCsi(scene: Scene): Promise<void> {
  await scene.cross("migrate");
  await expectOnePath(scene, thereOnce);
}

describe("found by their seeds", () => {
  // The controller manager takes the volume out of the node's status and dies before its detach leaves, or is
  // done. The crossing sees an empty node and flips it. The next controller manager asks the cloud what is
  // attached, gets no answer, and lets CSI attach the disk that the in-tree code still holds.
  it.each([100269, 100380])("seed %i (contract.md C1)", async (seed) => {
    expect((await simulateCrossing({ seed, cloud: "faultFree" })).violations).toEqual([]);
  });

  // The same story under a cloud that throttles, is slow and late: these broke C1, all of them.
  it.each([29, 34, 36, 43, 47])("seed %i of a bad cloud day (contract.md C1)", async (seed) => {
    expect((await simulateCrossing({ seed })).violations).toEqual([]);
  });
});

describe("over to CSI", () => {
  it.each(["before its detach leaves", "while the cloud detaches"])(
    "the controller manager crashes %s, and the next one has no record of what is attached (contract.md C1)",
    (when) =>
      Scene.play(async (scene) => {
        const flips: string[] = [];
        if (when.includes("leaves")) scene.deathAt(manager, "detachDisk");
        scene.cloud(slow);
        const crossing = scene.cross("migrate", (step) => {
          if (step === "flip") flips.push(`${step} with ${scene.attachments} attached`);
        });
        await scene.until("the volume has left the status", () => scene.volumesAttached.length === 0);
        await scene.sleep(1_000);
        scene.crash(manager);
        await scene.sleep(30_000);
        expect(flips).toEqual([]);
        scene.cloud({ throttledList: 1000 });
        await scene.cluster.start(manager);
        await crossing;
        expect(flips).toEqual(["flip with 0 attached"]);
        await scene.sleep(60_000);
        // The controller goes on asking, and CSI waits.
        expect(scene.effects).toEqual(["in-tree attach", "in-tree detach"]);
        expect((await scene.writerEvents()).join("\n")).toMatch(
          /not attached to node node-1 yet: .*slow down/,
        );
        scene.cloud({});
        await expectOnePath(scene, thereOnce);
      }),
  );

  it("a detach that was reported as failed takes effect later (contract.md C1)", () =>
    Scene.play(async (scene) => {
      const flips: string[] = [];
      scene.cloud(late);
      const crossing = scene.cross("migrate", (step) => {
        if (step === "flip") flips.push(`${step} with ${scene.attachments} attached`);
      });
      await scene.until("a detach was reported as failed", () => scene.faults.length > 0);
      await scene.sleep(15_000);
      expect(flips).toEqual([]);
      scene.cloud({});
      await crossing;
      expect(flips).toEqual(["flip with 0 attached"]);
      await expectOnePath(scene, thereOnce);
    }));

  it("the controller manager dies while the cloud attaches, and the pod goes (contract.md C1)", () =>
    Scene.play(async (scene) => {
      await scene.cluster.platform.setControlPlaneGates(gatesOn, scene.signal);
      await scene.writerRuns();
      await scene.scaleWriter(0);
      await scene.until("detached", () => scene.attachments === 0);
      scene.cloud(slow);
      await scene.scaleWriter(1);
      await scene.until("an attach is under way", () =>
        scene.faults.some((fault) => fault.includes("the attach of vol")),
      );
      scene.crash(manager);
      await scene.until("the cloud has attached it", () => scene.attachments === 1);
      expect(scene.volumesAttached).toEqual([]);
      scene.cloud({ throttledList: 1000 });
      const flips: string[] = [];
      const crossing = scene.cross("migrate", (step) => {
        if (step === "flip") flips.push(`${step} with ${scene.attachments} attached`);
      });
      await scene.sleep(10_000);
      await scene.cluster.start(manager);
      await scene.until("flipped", () => flips.length > 0);
      expect(flips).toEqual(["flip with 0 attached"]);
      scene.cloud({});
      await crossing;
      await expectOnePath(scene, ["in-tree attach", "in-tree detach", ...thereOnce]);
    }));

  it("a node is flipped by its gates alone while its volume is detached and the controller manager is dead (contract.md C1)", () =>
    Scene.play(async (scene) => {
      await scene.cluster.platform.setControlPlaneGates(gatesOn, scene.signal);
      await scene.writerRuns();
      scene.deathAt(manager, "detachDisk");
      await scene.scaleWriter(0);
      await scene.until("the volume has left the status", () => scene.volumesAttached.length === 0);
      await scene.sleep(1_000);
      await scene.cluster.platform.setNodeGates(node, gatesOn, scene.signal);
      await scene.sleep(60_000);
      // The detach is not confirmed, so the node stays as it is.
      expect(scene.isMigrated).toBe(false);
      expect(scene.attachments).toBe(1);
      scene.cloud({ throttledList: 1000 });
      await scene.cluster.start(manager);
      await scene.until("the node changes over", () => scene.isMigrated);
      expect(scene.attachments).toBe(0);
      scene.cloud({});
      await scene.scaleWriter(1);
      await expectOnePath(scene, thereOnce);
    }));
});

describe("back to the in-tree code", () => {
  it.each(["csi-controller", manager])("%s dies while the driver detaches (contract.md C1)", (victim) =>
    Scene.play(async (scene) => {
      await overToCsi(scene);
      scene.cloud(slow);
      const flips: string[] = [];
      const crossing = scene.cross("rollback", (step) => {
        if (step === "flip") flips.push(`${step} with ${scene.attachments} attached`);
      });
      await scene.until("the driver detaches", () =>
        scene.faults.some((fault) => /the detach of .* for the csi code/.test(fault)),
      );
      scene.crash(victim);
      await scene.sleep(3_000);
      expect(flips).toEqual([]);
      await scene.cluster.start(victim);
      scene.cloud({});
      await crossing;
      expect(flips).toEqual(["flip with 0 attached"]);
      await expectOnePath(scene, thereAndBack);
    }),
  );

  it("a ControllerUnpublish that was reported as failed takes effect later (contract.md C1)", () =>
    Scene.play(async (scene) => {
      await overToCsi(scene);
      scene.cloud(late);
      const flips: string[] = [];
      const crossing = scene.cross("rollback", (step) => {
        if (step === "flip") flips.push(`${step} with ${scene.attachments} attached`);
      });
      await scene.until("a detach was reported as failed", () => scene.faults.length > 0);
      await scene.sleep(15_000);
      expect(flips).toEqual([]);
      scene.cloud({});
      await crossing;
      expect(flips).toEqual(["flip with 0 attached"]);
      await expectOnePath(scene, thereAndBack);
    }));

  it("a node is flipped by its gates alone while the driver is dead in the midst of a detach (contract.md C1)", () =>
    Scene.play(async (scene) => {
      await overToCsi(scene);
      scene.deathAt("csi-controller", "detachDisk");
      await scene.scaleWriter(0);
      await scene.until("the volume has left the status", () => scene.volumesAttached.length === 0);
      await scene.sleep(1_000);
      await scene.cluster.platform.setNodeGates(node, { CSIMigrationAWS: false }, scene.signal);
      await scene.sleep(60_000);
      expect(scene.isMigrated).toBe(true);
      expect(scene.attachments).toBe(1);
      await scene.cluster.start("csi-controller");
      await scene.until("the node changes over", () => !scene.isMigrated);
      expect(scene.attachments).toBe(0);
      await scene.scaleWriter(1);
      await expectOnePath(scene, thereAndBack);
    }));
});
