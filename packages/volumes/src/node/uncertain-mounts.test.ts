/**
 * What may be mounted counts as mounted, whatever the answer was and whichever caller asked: C2 and C3 of
 * docs/contract.md where the outcome of a call, or the state on disk, is not known.
 */
import { CsiStatusError } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { csiOn, inUse, isReady, migratedNode, nodeWithMount } from "./testing/migrated-node.ts";
import { csiName, inTreeName, NodeWorld, nodeName, rootDir } from "./testing/node-world.ts";
import { failOnce } from "./testing/test-driver.ts";

const csiOff = { CSIMigration: true, CSIMigrationAWS: false };
const plugin = "kubernetes.io/aws-ebs";

describe("a stage or publish with an uncertain outcome", () => {
  it.each([
    ["NodeStageVolume", "before"],
    ["NodeStageVolume", "after"],
    ["NodePublishVolume", "before"],
    ["NodePublishVolume", "after"],
  ] as const)(
    "%s, whose answer was lost %s it mounted, counts as mounted although the driver cannot be asked the next time (node-agent.md 5)",
    async (rpc, when) => {
      const { world, agent } = await migratedNode();
      failOnce(world.driver, rpc, "DEADLINE_EXCEEDED", when);
      await world.pod("p", ["vol-1"]);
      await world.attachCsi("vol-1");
      await world.until("called", () => world.driver.calls.includes(`${rpc} vol-1`));
      await world.clock.settle();
      let refused = 0;
      let isSilent = true;
      world.driver.before = (called) => {
        if (called !== "NodeGetCapabilities" || !isSilent) return;
        refused++;
        throw new Error("the driver cannot be asked");
      };
      await world.until("tried again", () => refused > 0);
      await world.clock.settle();
      await world.deletePod("p");
      await world.clock.advance(30_000);
      expect(await inUse(world)).toEqual([csiName("vol-1")]);
      isSilent = false;
      await world.until("not in use", async () => (await inUse(world)).length === 0);
      if (rpc === "NodePublishVolume") expect(world.driver.calls).toContain("NodeUnpublishVolume vol-1");
      expect(world.driver.calls.at(-1)).toBe("NodeUnstageVolume vol-1");
      expect(await world.mounts()).toEqual([]);
      await agent.stop();
    },
  );

  it.each(["NodeStageVolume", "NodePublishVolume"] as const)(
    "%s counts as mounted although the next try fails on the node's own disk (node-agent.md 5)",
    async (rpc) => {
      const { world, agent } = await migratedNode();
      failOnce(world.driver, rpc, "DEADLINE_EXCEEDED", "before");
      await world.pod("p", ["vol-1"]);
      await world.attachCsi("vol-1");
      await world.until("called", () => world.driver.calls.includes(`${rpc} vol-1`));
      await world.clock.settle();
      const write = world.host.writeFileAtomic.bind(world.host);
      let refused = 0;
      world.host.writeFileAtomic = async (path) => {
        refused++;
        throw new HostError("writeFileAtomic", path, "ENOSPC");
      };
      await world.until("tried again", () => refused > 0);
      await world.clock.settle();
      await world.deletePod("p");
      world.host.writeFileAtomic = write;
      await world.until("not in use", async () => (await inUse(world)).length === 0);
      if (rpc === "NodePublishVolume") expect(world.driver.calls).toContain("NodeUnpublishVolume vol-1");
      expect(world.driver.calls.at(-1)).toBe("NodeUnstageVolume vol-1");
      await agent.stop();
    },
  );

  it("counts as mounted after a final error, too, while the path is a mount point (node-agent.md 5)", async () => {
    const { world, agent } = await migratedNode();
    // The driver did its work and answers with an error that says it did not.
    failOnce(world.driver, "NodeStageVolume", "INTERNAL", "after");
    await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.until("staged", () => world.driver.calls.includes("NodeStageVolume vol-1"));
    await world.clock.settle();
    expect(await world.mounts()).toHaveLength(1);
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    await agent.stop();
  });
});

describe("a volume that was staged before a restart", () => {
  it("and cannot be staged again is unstaged nevertheless, by a driver that mounts nothing (node-agent.md 5)", async () => {
    const { world, agent } = await nodeWithMount();
    agent.crash();
    // As a driver does that only logs in to its storage when it stages.
    for (const target of await world.mounts()) await world.host.unmount(`${rootDir}/${target}`);
    world.driver.calls.length = 0;
    world.driver.before = (rpc) => {
      if (rpc === "NodeStageVolume") throw new CsiStatusError("INVALID_ARGUMENT", "as the test wants");
    };
    const second = world.start(csiOn);
    await world.until("refused", () => world.driver.calls.includes("NodeStageVolume vol-1"));
    await world.clock.settle();
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(world.driver.calls.at(-1)).toBe("NodeUnstageVolume vol-1");
    await second.stop();
  });
});

describe("a Node that was deleted while its machine runs", () => {
  it("is made again with what is mounted, before all of volumesInUse is known (node-agent.md 8, contract.md C2)", async () => {
    const { world, agent } = await nodeWithMount();
    agent.crash();
    // The CSINode goes with its Node, and cannot be made again before it.
    await world.kube.delete(resources.nodes, { name: nodeName }, world);
    await world.kube.delete(resources.csiNodes, { name: nodeName }, world);
    const second = world.start(csiOn);
    expect(second.volumes.status().volumesFound).toBeUndefined();
    await world.until("read back", () => second.volumes.status().volumesFound !== undefined);
    expect(second.volumes.status()).toMatchObject({
      volumesFound: [csiName("vol-1")],
      attachmentsFound: [], // It has a VolumeAttachment.
      volumesInUse: undefined,
    });
    await second.stop();
  });

  it("is made again without a record of what its provider lists (node-agent.md 8, controllers.md A6)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start(csiOff);
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachInTree("vol-1");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    agent.crash();
    const second = world.start(csiOff);
    await world.until("read back", () => second.volumes.status().volumesFound !== undefined);
    expect(second.volumes.status()).toMatchObject({
      volumesFound: [inTreeName("vol-1")],
      attachmentsFound: [],
    });
    await second.stop();
  });
});

describe("a PersistentVolume that is made again under its name for another disk", () => {
  it("is staged only after the disk before it was unstaged (node-agent.md 7.5)", async () => {
    const { world, agent } = await nodeWithMount();
    let isHealthy = false;
    world.driver.before = (rpc) => {
      if (rpc === "NodeUnstageVolume" && !isHealthy) throw new Error("no");
    };
    await world.deletePod("p");
    await world.until("asked", () => world.driver.calls.includes("NodeUnstageVolume vol-1"));
    await world.replaceVolume("vol-1", "vol-2");
    const next = await world.pod("next", ["vol-1"]);
    await world.attachment("vol-2", await world.disk("vol-2"));
    await world.reportAttached(csiName("vol-2"));
    await world.clock.advance(20_000);
    expect(world.driver.calls).not.toContain("NodeStageVolume vol-2");
    isHealthy = true;
    await world.until("mounted", () => agent.volumes.mountedVolumes(next.metadata.uid).size === 1);
    const order = world.driver.calls.filter((call) => /Stage|Unstage/.test(call)).slice(-2);
    expect(order).toEqual(["NodeUnstageVolume vol-1", "NodeStageVolume vol-2"]);
    await agent.stop();
  });
});

describe("an unmount with an uncertain outcome", () => {
  it("of the device makes the next pod stage the volume again (node-agent.md 5)", async () => {
    const { world, agent } = await nodeWithMount();
    const next: string[] = [];
    world.driver.after = async (rpc) => {
      if (rpc !== "NodeUnstageVolume" || next.length > 0) return;
      // The volume is unstaged, and wanted again before the answer comes, which is lost.
      next.push((await world.pod("next", ["vol-1"])).metadata.uid);
      await world.clock.sleep(1000, world.signal);
      failOnce(world.driver, "NodeUnstageVolume", "UNAVAILABLE", "after");
      await world.driver.after(rpc, "vol-1");
    };
    await world.deletePod("p");
    await world.until("next", () => next.length > 0);
    world.driver.calls.length = 0;
    await world.until("mounted", () => agent.volumes.mountedVolumes(next[0] ?? "").size === 1);
    expect(world.driver.calls).toEqual(["NodeStageVolume vol-1", "NodePublishVolume vol-1"]);
    await agent.stop();
  });

  it.each(["NodeUnpublishVolume", "NodeUnstageVolume"] as const)(
    "%s that keeps failing is tried again with back-off, and the volume stays in use (node-agent.md 5)",
    async (rpc) => {
      const { world, agent } = await nodeWithMount();
      let healthy = false;
      world.driver.before = (called) => {
        if (called === rpc && !healthy) throw new Error("no");
      };
      world.driver.calls.length = 0;
      await world.deletePod("p");
      await world.clock.advance(600_000);
      const tries = world.driver.calls.filter((call) => call === `${rpc} vol-1`).length;
      expect(tries).toBeGreaterThan(8);
      expect(tries).toBeLessThan(16);
      expect(await inUse(world)).toEqual([csiName("vol-1")]);
      healthy = true;
      await world.until("not in use", async () => (await inUse(world)).length === 0, 130_000);
      await agent.stop();
    },
  );
});

describe("a pod that the API server does not know any more", () => {
  it("and that was removed while its volume was staged gets it unpublished and unstaged (node-agent.md 11.5)", async () => {
    const { world, agent } = await migratedNode();
    world.driver.before = async (rpc) => {
      if (rpc === "NodeStageVolume") await world.clock.sleep(30_000, world.signal);
    };
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.until("staging", () => world.driver.calls.includes("NodeStageVolume vol-1"));
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    await world.until("not in use", async () => (await inUse(world)).length === 0, 10_000);
    expect(await world.mounts()).toEqual([]);
    await agent.stop();
  });

  it("keeps its mounts through a restart while its containers run (node-agent.md 9)", async () => {
    const { world, agent, pod } = await nodeWithMount();
    world.running.add(pod.metadata.uid);
    const mounts = await world.mounts();
    agent.crash();
    await world.deletePod("p");
    const second = world.start(csiOn);
    await world.clock.advance(120_000);
    expect(await world.mounts()).toEqual(mounts);
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    world.running.delete(pod.metadata.uid);
    await world.until("not in use", async () => (await inUse(world)).length === 0, 10_000);
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });
});

describe("a change of the migration gates", () => {
  it("waits while volumesInUse names a volume that no pod merely waits for (node-agent.md 2.4)", async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    const first = world.start(csiOff);
    await world.until("ready", () => isReady(world, first));
    await first.stop();
    const setInUse = (volumesInUse: readonly string[]) =>
      world.kube.patch(
        resources.nodes,
        { name: "node-1" },
        { type: "merge", body: { status: { volumesInUse } } },
        { subresource: "status", signal: world.signal },
      );
    await setInUse([inTreeName("vol-1")]);
    world.posting = false;
    const second = world.start(csiOn);
    await world.until("decided", () => second.volumes.kubeletError() === undefined);
    await world.clock.advance(10_000);
    expect(await world.migratedPlugins()).toBeUndefined();
    world.posting = true;
    await world.until("changed over", async () => (await world.migratedPlugins()) === plugin, 10_000);
    await second.stop();
  });
});
