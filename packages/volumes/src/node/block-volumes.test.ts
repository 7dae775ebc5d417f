/** Volumes that pods get as devices. Source: docs/behaviour/node-agent.md 7.4, 7.5 and docs/behaviour/csi-plugin.md 10. */
import { CsiStatusError } from "@longshore/csi";
import { type Pod, resources, type Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { csiOn, inUse } from "./testing/migrated-node.ts";
import { csiName, driverName, NodeWorld, type RunningAgent, rootDir } from "./testing/node-world.ts";
import { failOnce } from "./testing/test-driver.ts";

const devices = "plugins/kubernetes.io/csi/volumeDevices";
const published = (uid: string, id: string) => `${devices}/publish/pv-${id}/${uid}`;
const mapped = (uid: string, id: string) => `${devices}/pv-${id}/dev/${uid}`;
const link = (uid: string, id: string) => `pods/${uid}/volumeDevices/kubernetes.io~csi/pv-${id}`;

/** A node whose driver has registered, with a CSI block volume. */
async function blockNode(): Promise<{ world: NodeWorld; agent: RunningAgent }> {
  const world = await NodeWorld.create();
  await world.serveDriver();
  await world.blockVolume("vol-1");
  const agent = world.start(csiOn);
  await world.until("registered", () => world.registrations.length > 0);
  return { world, agent };
}

/** The same with the volume mapped for pod `p`. */
async function nodeWithDevice() {
  const { world, agent } = await blockNode();
  const pod = await world.blockPod("p", ["vol-1"]);
  await world.attachCsi("vol-1");
  await mappedFor(world, agent, pod);
  return { world, agent, pod };
}

async function mappedFor(world: NodeWorld, agent: RunningAgent, pod: Stored<Pod>): Promise<void> {
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
}

async function everythingGone(world: NodeWorld): Promise<void> {
  await world.until("not in use", async () => (await inUse(world)).length === 0);
  expect(await world.mounts()).toEqual([]);
  expect((await world.host.readDirectory(`${rootDir}/${devices}/publish`)) ?? []).toEqual([]);
  expect((await world.host.readDirectory(`${rootDir}/${devices}/staging`)) ?? []).toEqual([]);
  const names = (await world.host.readDirectory(`${rootDir}/${devices}`)) ?? [];
  expect(names.filter((name) => name !== "publish" && name !== "staging")).toEqual([]);
}

describe("a CSI block volume", () => {
  it("is staged, published and mapped once it is attached, and all of it undone when the pod is gone", async () => {
    const { world, agent } = await blockNode();
    const pod = await world.blockPod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    await world.until("in use", async () => (await inUse(world)).includes(csiName("vol-1")));
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    await world.attachCsi("vol-1");
    await mappedFor(world, agent, pod);
    expect(world.driver.calls.slice(1)).toEqual(["NodeStageVolume vol-1", "NodePublishVolume vol-1"]);
    expect(await world.mounts()).toEqual([published(uid, "vol-1"), mapped(uid, "vol-1")].sort());
    expect(agent.volumes.mountedVolumes(uid)).toEqual(
      new Map([["data-vol-1", { path: `${rootDir}/${link(uid, "vol-1")}`, readOnly: false }]]),
    );
    expect(await world.host.readLink(`${rootDir}/${link(uid, "vol-1")}`)).toBe(
      `${rootDir}/${mapped(uid, "vol-1")}`,
    );
    expect((await world.host.stat(`${rootDir}/${mapped(uid, "vol-1")}`))?.kind).toBe("blockDevice");
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    await everythingGone(world);
    expect(world.driver.calls.slice(3)).toEqual(["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]);
    expect(await world.host.stat(`${rootDir}/${link(uid, "vol-1")}`)).toBeUndefined();
    await agent.stop();
  });

  it("is mapped for two pods of the node, and torn down after the last", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    const other = await world.blockPod("q", ["vol-1"]);
    await mappedFor(world, agent, other);
    expect(world.driver.calls.filter((call) => call.startsWith("NodeStage"))).toHaveLength(1);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    const { uid } = other.metadata;
    expect(await world.mounts()).toEqual([published(uid, "vol-1"), mapped(uid, "vol-1")].sort());
    expect(world.driver.calls).not.toContain("NodeUnstageVolume vol-1");
    await world.deletePod("q");
    await everythingGone(world);
    await agent.stop();
  });
});

describe("a crash of the agent", () => {
  it.each(["running", "gone"])("is survived by a device whose pod is %s", async (fate) => {
    const { world, agent, pod } = await nodeWithDevice();
    const { uid } = pod.metadata;
    agent.crash();
    if (fate === "gone") await world.deletePod("p");
    else world.running.add(uid);
    const second = world.start(csiOn);
    if (fate === "gone") {
      await world.until("gone", () => second.volumes.podVolumesGone(uid));
      await everythingGone(world);
    } else {
      await world.until("mapped", () => second.volumes.mountedVolumes(uid).size === 1);
      expect(await world.mounts()).toEqual([published(uid, "vol-1"), mapped(uid, "vol-1")].sort());
      expect(world.driver.calls).not.toContain("NodeUnpublishVolume vol-1");
      expect(world.postedInUse.every((names) => names.includes(csiName("vol-1")))).toBe(true);
    }
    await second.stop();
  });

  it("leaves a device of which only the directory is known: it is unstaged", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    failOnce(world.driver, "NodeUnstageVolume", "INTERNAL");
    await world.deletePod("p");
    await world.until("unpublished", () => agent.volumes.podVolumesGone(pod.metadata.uid));
    await world.until("tried", () => world.driver.calls.includes("NodeUnstageVolume vol-1"));
    agent.crash();
    const second = world.start(csiOn);
    await everythingGone(world);
    expect(world.driver.calls.filter((call) => call === "NodeUnstageVolume vol-1")).toHaveLength(2);
    await second.stop();
  });

  it("leaves a damaged vol_data.json: the volume is named by its PersistentVolume, and stays in use until then", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    agent.crash();
    await world.host.writeFileAtomic(`${rootDir}/${devices}/pv-vol-1/data/vol_data.json`, "{");
    await world.deletePod("p");
    const second = world.start(csiOn);
    await world.until("gone", () => second.volumes.podVolumesGone(pod.metadata.uid));
    await everythingGone(world);
    expect(world.driver.calls.slice(-2)).toEqual(["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]);
    expect(world.postedInUse.at(0)).toEqual([csiName("vol-1")]);
    await second.stop();
  });

  it("leaves a directory in which nothing was staged: it is removed", async () => {
    const world = await NodeWorld.create();
    await world.host.makeDirectory(`${rootDir}/${devices}/pv-vol-1/data`);
    const agent = world.start(csiOn);
    await world.until(
      "removed",
      async () => (await world.host.readDirectory(`${rootDir}/${devices}`))?.length === 0,
    );
    await agent.stop();
  });
});

describe("what failed", () => {
  it("NodeStageVolume for good: nothing is left of it when the pod is gone", async () => {
    const { world, agent } = await blockNode();
    world.driver.before = (rpc) => {
      if (rpc === "NodeStageVolume") throw new CsiStatusError("INVALID_ARGUMENT", "no");
    };
    await world.attachCsi("vol-1");
    await world.blockPod("p", ["vol-1"]);
    await world.until("tried", () => world.driver.calls.includes("NodeStageVolume vol-1"));
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls).not.toContain("NodeUnstageVolume vol-1");
    await agent.stop();
  });

  it.each([
    ["NodeStageVolume", "before", ["NodeUnstageVolume vol-1"]],
    ["NodeStageVolume", "after", ["NodeUnstageVolume vol-1"]],
    ["NodePublishVolume", "before", ["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]],
    ["NodePublishVolume", "after", ["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]],
  ] as const)(
    "%s, without a word whether it was done %s: it is undone when the pod is gone",
    async (rpc, when, undone) => {
      const { world, agent } = await blockNode();
      world.driver[when] = (called) => {
        if (called === rpc) throw new CsiStatusError("UNAVAILABLE", "no");
      };
      await world.attachCsi("vol-1");
      const pod = await world.blockPod("p", ["vol-1"]);
      await world.until("tried", () => world.driver.calls.includes(`${rpc} vol-1`));
      expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
      const before = world.driver.calls.length;
      await world.deletePod("p");
      await everythingGone(world);
      expect(world.driver.calls.slice(before).filter((call) => call.includes("Un"))).toEqual(undone);
      await agent.stop();
    },
  );

  it("NodePublishVolume for good: the pod has no link, and the volume is unstaged when the pod is gone", async () => {
    const { world, agent } = await blockNode();
    world.driver.before = (rpc) => {
      if (rpc === "NodePublishVolume") throw new CsiStatusError("INVALID_ARGUMENT", "no");
    };
    await world.attachCsi("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    await world.until("tried", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.settle();
    expect(await world.host.stat(`${rootDir}/${link(pod.metadata.uid, "vol-1")}`)).toBeUndefined();
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls).not.toContain("NodeUnpublishVolume vol-1");
    await agent.stop();
  });

  it("an unmapping is repeated, and the volume stays in use until it is unstaged", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    failOnce(world.driver, "NodeUnpublishVolume", "INTERNAL");
    await world.deletePod("p");
    await world.until("tried", () => world.driver.calls.includes("NodeUnpublishVolume vol-1"));
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    expect(agent.volumes.podVolumesGone(pod.metadata.uid)).toBe(false);
    await everythingGone(world);
    await agent.stop();
  });

  it("is said in an event of the pod", async () => {
    const { world, agent } = await blockNode();
    failOnce(world.driver, "NodePublishVolume", "INVALID_ARGUMENT");
    await world.attachCsi("vol-1");
    await world.blockPod("p", ["vol-1"]);
    const reasons = async () => (await world.kube.list(resources.events, world)).items.map((e) => e.reason);
    await world.until("an event", async () => (await reasons()).includes("FailedMapVolume"));
    await agent.stop();
  });
});

describe("the mode of a volume", () => {
  it.each([
    [
      "a device in volumeMounts",
      true,
      "container c, volumeMounts: volume data-vol-1 has volumeMode Block, so it belongs into volumeDevices",
    ],
    [
      "a file system in volumeDevices",
      false,
      "container c, volumeDevices: volume data-vol-1 has volumeMode Filesystem, so it belongs into volumeMounts",
    ],
  ])("%s is refused", async (_what, isBlock, message) => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    if (isBlock) await world.blockVolume("vol-1");
    else await world.volume("vol-1");
    const agent = world.start(csiOn);
    const pod = await (isBlock ? world.pod("p", ["vol-1"]) : world.blockPod("p", ["vol-1"]));
    const wait = world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await expect(wait).rejects.toThrow(`pod default/p, ${message}`);
    await agent.stop();
  });

  it("changes: a device is unstaged before the disk is mounted as a file system, under a PersistentVolume made again", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    await world.deletePod("p");
    await world.removeVolume("vol-1");
    await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
    const second = await world.pod("q", ["vol-1"]);
    await mappedFor(world, agent, second);
    expect(world.driver.calls.slice(3)).toEqual([
      "NodeUnpublishVolume vol-1",
      "NodeUnstageVolume vol-1",
      "NodeStageVolume vol-1",
      "NodePublishVolume vol-1",
    ]);
    expect(agent.volumes.podVolumesGone(pod.metadata.uid)).toBe(true);
    await agent.stop();
  });
});
