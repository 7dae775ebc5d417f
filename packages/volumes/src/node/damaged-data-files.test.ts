/**
 * `vol_data.json` that is damaged or missing: what it described is unknown, not absent. Such a volume stays in use and
 * holds the node on its way (docs/contract.md C1, C2), and a running pod keeps its mounts (C3).
 */
import { describe, expect, it } from "vitest";
import { csiOn, inUse, isReady, nodeWithMount } from "./testing/migrated-node.ts";
import { csiName, driverName, NodeWorld, rootDir } from "./testing/node-world.ts";

const csiOff = { CSIMigration: true, CSIMigrationAWS: false };
const plugin = "kubernetes.io/aws-ebs";
const staging = (id: string) => `plugins/kubernetes.io/csi/pv/pv-${id}`;

describe("vol_data.json that cannot be read", () => {
  it("of a staged volume keeps it in use until it is unstaged by its PersistentVolume's name (node-agent.md 9; csi-plugin.md 8.3)", async () => {
    const { world, agent } = await nodeWithMount();
    let dead = false;
    world.driver.before = (rpc) => {
      if (rpc !== "NodeUnstageVolume" || dead) return undefined;
      dead = true;
      agent.crash();
      return new Promise(() => {});
    };
    await world.deletePod("p");
    await world.until("unpublished", () => dead);
    await world.host.writeFileAtomic(`${rootDir}/${staging("vol-1")}/vol_data.json`, "{");
    const second = world.start(csiOn);
    await world.clock.advance(60_000);
    expect(await world.mounts()).toHaveLength(1);
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    // The administrator repairs the file.
    const data = JSON.stringify({ volumeHandle: "vol-1", driverName: "ebs.csi.aws.com" });
    await world.host.writeFileAtomic(`${rootDir}/${staging("vol-1")}/vol_data.json`, data);
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });

  it("of a running pod's volume never gets it unpublished, however slow it is mounted again (node-agent.md 9; csi-plugin.md 9.7)", async () => {
    const { world, agent, pod } = await nodeWithMount();
    const { uid } = pod.metadata;
    world.running.add(uid);
    agent.crash();
    const directory = `${rootDir}/pods/${uid}/volumes/kubernetes.io~csi/pv-vol-1`;
    await world.host.writeFileAtomic(`${directory}/vol_data.json`, "{");
    const mounts = await world.mounts();
    world.driver.calls.length = 0;
    world.driver.before = async (rpc) => {
      if (rpc === "NodePublishVolume") await world.clock.sleep(20_000, world.signal);
    };
    const second = world.start(csiOn);
    await world.until("mounted", () => second.volumes.mountedVolumes(uid).size === 1);
    await world.clock.advance(60_000);
    expect(world.driver.calls).not.toContain("NodeUnpublishVolume vol-1");
    expect(await world.mounts()).toEqual(mounts);
    world.running.delete(uid);
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });

  it.each(["readable", "damaged"] as const)(
    "of a staged volume never gets it unstaged under the containers of a pod without object, whose own file is %s (node-agent.md 9; csi-plugin.md 8.3)",
    async (kind) => {
      const world = await NodeWorld.create();
      await world.serveDriver();
      await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
      const agent = world.start(csiOn);
      await world.until("registered", () => world.registrations.length > 0);
      const pod = await world.pod("p", ["vol-1"]);
      const { uid } = pod.metadata;
      await world.attachCsi("vol-1");
      await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
      world.running.add(uid);
      agent.crash();
      await world.deletePod("p");
      await world.host.writeFileAtomic(`${rootDir}/${staging("vol-1")}/vol_data.json`, "{");
      const published = `${rootDir}/pods/${uid}/volumes/kubernetes.io~csi/pv-vol-1`;
      if (kind === "damaged") await world.host.writeFileAtomic(`${published}/vol_data.json`, "{");
      // As a driver does that mounts nothing when it stages.
      await world.host.unmount(`${rootDir}/${staging("vol-1")}/globalmount`);
      world.driver.calls.length = 0;
      const second = world.start(csiOn);
      await world.clock.advance(60_000);
      expect(world.driver.calls.filter((call) => call.startsWith("NodeUn"))).toEqual([]);
      expect(await inUse(world)).toEqual([csiName("vol-1")]);
      world.running.delete(uid);
      await world.host.writeFileAtomic(
        `${published}/vol_data.json`,
        JSON.stringify({ volumeHandle: "vol-1", driverName }),
      );
      await world.until("not in use", async () => (await inUse(world)).length === 0);
      expect(world.driver.calls.filter((call) => call.startsWith("NodeUn"))).toEqual([
        "NodeUnpublishVolume vol-1",
        "NodeUnstageVolume vol-1",
      ]);
      await second.stop();
    },
  );

  it("and was removed already is no reason to keep the directory of a pod that has gone (node-agent.md 9; csi-plugin.md 8.3)", async () => {
    const { world, agent, pod } = await nodeWithMount();
    const { uid } = pod.metadata;
    await agent.stop();
    await world.deletePod("p");
    const directory = `${rootDir}/pods/${uid}/volumes/kubernetes.io~csi/pv-vol-1`;
    await world.host.unmount(`${directory}/mount`);
    await world.host.removeFile(`${directory}/vol_data.json`);
    const second = world.start(csiOn);
    await world.until("gone", () => second.volumes.podVolumesGone(uid));
    expect(await world.host.stat(directory)).toBeUndefined();
    await second.stop();
  });

  it.each(["pod", "staging"] as const)(
    "in a %s directory holds the way back to in-tree (node-agent.md 2.4)",
    async (where) => {
      const { world, agent, pod } = await nodeWithMount();
      await agent.stop();
      const directory =
        where === "staging"
          ? staging("vol-1")
          : `pods/${pod.metadata.uid}/volumes/kubernetes.io~csi/pv-vol-1`;
      const other =
        where === "pod" ? staging("vol-1") : `pods/${pod.metadata.uid}/volumes/kubernetes.io~csi/pv-vol-1`;
      // Nothing but that file is left of the volume.
      await world.deletePod("p");
      const mount = where === "pod" ? `${other}/globalmount` : `${other}/mount`;
      await world.host.unmount(`${rootDir}/${mount}`);
      await world.host.removeDirectory(`${rootDir}/${mount}`);
      await world.host.removeFile(`${rootDir}/${other}/vol_data.json`);
      await world.host.removeDirectory(`${rootDir}/${other}`);
      await world.detachCsi("vol-1");
      await world.host.writeFileAtomic(`${rootDir}/${directory}/vol_data.json`, "{");
      world.running.add(pod.metadata.uid);
      const second = world.start(csiOff);
      await world.until("ready", () => isReady(world, second));
      await world.clock.advance(10_000);
      expect(await world.migratedPlugins()).toBe(plugin);
      await second.stop();
    },
  );
});
