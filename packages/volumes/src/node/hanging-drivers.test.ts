/** Drivers that do not answer: each call has a deadline, and says so. Source: docs/behaviour/csi-plugin.md 1. */
import { NodeServiceCapability_RPC_Type as Capability } from "@longshore/csi";
import { resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { driverName, NodeWorld } from "./testing/node-world.ts";
import { testDriver } from "./testing/test-driver.ts";

const never = () => new Promise<void>(() => {});

/** A node with a pod for each volume of one driver. */
async function aNode(ids: readonly string[], hanging: (rpc: string, id: string) => boolean) {
  const world = await NodeWorld.create();
  const driver = testDriver(world.host, { rpcs: [Capability.EXPAND_VOLUME] });
  driver.before = (rpc, id) => (hanging(rpc, id) ? never() : undefined);
  await world.serveDriver(driver);
  const agent = world.start();
  const pods = [];
  for (const id of ids) {
    await world.volume(id, { csi: { driver: driverName, volumeHandle: id, fsType: "ext4" } });
    await world.attachCsi(id);
    pods.push(await world.pod(`p-${id}`, [id]));
  }
  return { world, agent, uids: pods.map(({ metadata }) => metadata.uid) };
}

it.each(["NodeStageVolume", "NodePublishVolume"])(
  "a %s that hangs is an event after two minutes, and the pod can go (node-agent.md 7.1; contract.md C8)",
  async (hanging) => {
    const { world, agent, uids } = await aNode(
      ["vol-1", "vol-2"],
      (rpc, id) => rpc === hanging && id === "vol-1",
    );
    const [hung = "", other = ""] = uids;
    await world.until("the other is mounted", () => agent.volumes.mountedVolumes(other).size === 1, 10_000);
    await world.clock.advance(125_000);
    expect(await world.eventReasons()).toEqual(["Pod FailedMount"]);
    const { items } = await world.kube.list(resources.events, world);
    expect(items.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^MountVolume failed for volume "data-vol-1" \\(PersistentVolume "pv-vol-1"\\): ${hanging} of vol-1 may be in progress: .*: driver ${driverName} on node node-1 has not answered for 120 s: look into its log, and restart it if it hangs$`,
        ),
      ),
    ]);
    world.driver.before = () => {};
    await world.deletePod("p-vol-1");
    await world.until("gone", () => agent.volumes.podVolumesGone(hung));
    await agent.stop();
  },
);

it("a NodeExpandVolume that hangs is an event, holds up no other volume, and takes no mount (node-agent.md 7.6; contract.md C8)", async () => {
  const { world, agent, uids } = await aNode(
    ["vol-1", "vol-2"],
    (rpc, id) => rpc === "NodeExpandVolume" && id === "vol-1",
  );
  await world.until("mounted", () => uids.every((uid) => agent.volumes.mountedVolumes(uid).size === 1));
  for (const id of ["vol-1", "vol-2"]) await world.growVolume(id);
  const capacityOf = async (id: string) => (await world.claimStatus(id))?.capacity?.storage;
  await world.until("the other has grown", async () => (await capacityOf("vol-2")) === "2Mi", 100_000);
  await world.clock.advance(220_000);
  expect(await capacityOf("vol-1")).toBe("1Mi");
  expect(await world.eventReasons()).toContain("PersistentVolumeClaim VolumeResizeFailed");
  expect(uids.map((uid) => agent.volumes.mountedVolumes(uid).size)).toEqual([1, 1]);
  await agent.stop();
});
