/** Volumes that pods get as devices. Source: docs/behaviour/node-agent.md 7.4, 7.5 and docs/behaviour/csi-plugin.md 10. */
import type { Pod, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { csiOn, inUse } from "./testing/migrated-node.ts";
import { csiName, NodeWorld, type RunningAgent, rootDir } from "./testing/node-world.ts";

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
