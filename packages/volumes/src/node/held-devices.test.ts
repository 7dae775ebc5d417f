/** Devices that something still has when their last pod has gone. Source: docs/behaviour/node-agent.md 7.5. */
import { expect, it } from "vitest";
import { inUse } from "./testing/migrated-node.ts";
import { inTreeName, NodeWorld } from "./testing/node-world.ts";

it.each(["Filesystem", "Block"] as const)(
  "of volumes with volumeMode %s stay in use until they are let go, so that none is detached (node-agent.md 7.5, 8; contract.md C2)",
  async (volumeMode) => {
    const world = await NodeWorld.create();
    const source = { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } };
    await world.volume("vol-1", { ...source, volumeMode });
    const agent = world.start();
    await world.attachInTree("vol-1");
    const pod = await (volumeMode === "Block" ? world.blockPod("p", ["vol-1"]) : world.pod("p", ["vol-1"]));
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    const device = (await world.node()).status?.volumesAttached?.[0]?.devicePath ?? "";
    world.host.heldDevices.add(device);
    await world.deletePod("p");
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.clock.advance(600_000);
    expect(await inUse(world)).toEqual([inTreeName("vol-1")]);
    world.host.heldDevices.delete(device);
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    await agent.stop();
  },
);

it("a device that another pod is to have again is mounted, whatever else has it (node-agent.md 7.5)", async () => {
  const world = await NodeWorld.create();
  await world.volume("vol-1", { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } });
  const agent = world.start();
  await world.attachInTree("vol-1");
  const first = await world.pod("p", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(first, world.signal));
  const device = (await world.node()).status?.volumesAttached?.[0]?.devicePath ?? "";
  world.host.heldDevices.add(device);
  await world.deletePod("p");
  await world.until("unmounted", async () => (await world.mounts()).length === 0);
  const second = await world.pod("q", ["vol-1"]);
  await world.clock.run(agent.volumes.waitForAttachAndMount(second, world.signal));
  expect(agent.volumes.mountedVolumes(second.metadata.uid).size).toBe(1);
  await agent.stop();
});
