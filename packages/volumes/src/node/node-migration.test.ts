/** Flipping the gates of a node that was not drained: C1 over C5 (docs/contract.md), in both directions. */
import { resources } from "@longshore/kube";
import {
  changingOverAnnotation,
  migrationPendingCondition,
  pluginsChangingOver,
  uncertainVolumesAnnotation,
} from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { csiName, driverName, inTreeName, NodeWorld, type RunningAgent } from "./testing/node-world.ts";

const off = { CSIMigration: true, CSIMigrationAWS: false };
const on = { CSIMigration: true, CSIMigrationAWS: true };
const plugin = "kubernetes.io/aws-ebs";

interface Direction {
  readonly name: string;
  readonly before: Readonly<Record<string, boolean>>;
  readonly after: Readonly<Record<string, boolean>>;
  readonly listedBefore: string | undefined;
  readonly listedAfter: string | undefined;
  readonly oldName: (id: string) => string;
  readonly newName: (id: string) => string;
  attachOld(world: NodeWorld, id: string): Promise<unknown>;
  detachOld(world: NodeWorld, id: string): Promise<unknown>;
  attachNew(world: NodeWorld, id: string): Promise<unknown>;
}

const attachInTree = (world: NodeWorld, id: string) => world.attachInTree(id);
const detachInTree = (world: NodeWorld, id: string) => world.reportDetached(inTreeName(id));
const attachCsi = (world: NodeWorld, id: string) => world.attachCsi(id);
const detachCsi = (world: NodeWorld, id: string) => world.detachCsi(id);

const directions: readonly Direction[] = [
  {
    name: "to CSI",
    before: off,
    after: on,
    listedBefore: undefined,
    listedAfter: plugin,
    oldName: inTreeName,
    newName: csiName,
    attachOld: attachInTree,
    detachOld: detachInTree,
    attachNew: attachCsi,
  },
  {
    name: "back to in-tree",
    before: on,
    after: off,
    listedBefore: plugin,
    listedAfter: undefined,
    oldName: csiName,
    newName: inTreeName,
    attachOld: attachCsi,
    detachOld: detachCsi,
    attachNew: attachInTree,
  },
];

/** A node with one volume mounted the old way. */
async function nodeWithVolume(direction: Direction) {
  const world = await NodeWorld.create();
  await world.serveDriver();
  await world.volume("vol-1");
  await world.volume("vol-2");
  const agent = world.start(direction.before);
  const pod = await world.pod("p", ["vol-1"]);
  await direction.attachOld(world, "vol-1");
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  world.running.add(pod.metadata.uid);
  return { world, agent, pod };
}

async function isReady(world: NodeWorld, agent: RunningAgent): Promise<boolean> {
  return agent.volumes.kubeletError() === undefined && (await world.condition("Ready"))?.status === "True";
}

async function nodeEvents(world: NodeWorld): Promise<readonly string[]> {
  const { items } = await world.kube.list(resources.events, world);
  return items.filter((event) => event.involvedObject.kind === "Node").map((event) => event.reason ?? "");
}

describe.each(directions)("gates flipped $name", (direction) => {
  it("take effect at once on a node without volumes (node-agent.md 2.4; contract.md C1)", async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    const first = world.start(direction.before);
    await world.until("ready", () => isReady(world, first));
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    await first.stop();
    const second = world.start(direction.after);
    await world.until("ready", () => isReady(world, second));
    expect(await world.migratedPlugins()).toBe(direction.listedAfter);
    expect((await world.condition(migrationPendingCondition))?.status).toBe("False");
    await second.stop();
  });

  it("are held back while a volume is mounted, reported, and take effect when the last is gone (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first, pod } = await nodeWithVolume(direction);
    const mounts = await world.mounts();
    await first.stop();
    const second = world.start(direction.after);
    await world.until("ready", () => isReady(world, second));
    await world.clock.advance(60_000);
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    const condition = await world.condition(migrationPendingCondition);
    expect(condition?.status).toBe("True");
    expect(condition?.message).toContain(direction.oldName("vol-1"));
    expect(await nodeEvents(world)).toEqual([migrationPendingCondition]);
    expect(await world.mounts()).toEqual(mounts);
    expect(second.volumes.mountedVolumes(pod.metadata.uid).size).toBe(1);

    // A new pod goes the old way too, as long as the node has not changed over.
    const late = await world.pod("late", ["vol-2"]);
    await world.until("late in use", async () =>
      ((await world.node()).status?.volumesInUse ?? []).includes(direction.oldName("vol-2")),
    );
    await direction.attachOld(world, "vol-2");
    await world.clock.run(second.volumes.waitForAttachAndMount(late, world.signal));

    world.running.clear();
    await world.deletePod("p");
    await world.deletePod("late");
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.clock.advance(30_000);
    // Unmounted but still attached the old way.
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    await direction.detachOld(world, "vol-1");
    await world.clock.advance(30_000);
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    await direction.detachOld(world, "vol-2");
    await world.until(
      "changed over",
      async () => (await world.migratedPlugins()) === direction.listedAfter,
      10_000,
    );
    await world.until(
      "reported",
      async () => (await world.condition(migrationPendingCondition))?.status === "False",
    );
    await world.until("event", async () => (await nodeEvents(world)).includes("VolumeMigrationSwitched"));

    const next = await world.pod("next", ["vol-1"]);
    await world.until("in use the new way", async () =>
      ((await world.node()).status?.volumesInUse ?? []).includes(direction.newName("vol-1")),
    );
    await direction.attachNew(world, "vol-1");
    await world.clock.run(second.volumes.waitForAttachAndMount(next, world.signal));
    await second.stop();
  });

  it("are held back, also through a restart, while the controller has not confirmed the detach (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first } = await nodeWithVolume(direction);
    await first.stop();
    const name = direction.oldName("vol-1");
    // By protocol the volume leaves the status before it is detached; the record keeps it until that is done.
    await world.patchNode({ [uncertainVolumesAnnotation]: name });
    await world.reportDetached(name);
    world.running.clear();
    await world.deletePod("p");
    const second = world.start(direction.after);
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await second.stop();
    const third = world.start(direction.after);
    await world.until("ready", () => isReady(world, third));
    await world.clock.advance(30_000);
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    expect((await world.condition(migrationPendingCondition))?.message).toContain(name);
    await direction.detachOld(world, "vol-1");
    await world.patchNode({ [uncertainVolumesAnnotation]: null });
    await world.until(
      "changed over",
      async () => (await world.migratedPlugins()) === direction.listedAfter,
      10_000,
    );
    await third.stop();
  });

  it("take a pod along that was waiting for its volume, once nothing is attached (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first } = await nodeWithVolume(direction);
    await first.stop();
    const second = world.start(direction.after);
    await world.until("ready", () => isReady(world, second));
    const waiting = await world.pod("waiting", ["vol-2"]);
    await world.until("waiting in use", async () =>
      ((await world.node()).status?.volumesInUse ?? []).includes(direction.oldName("vol-2")),
    );
    world.running.clear();
    await world.deletePod("p");
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await direction.detachOld(world, "vol-1");
    await world.until("in use the new way", async () => {
      const inUse = (await world.node()).status?.volumesInUse ?? [];
      return inUse.length === 1 && inUse[0] === direction.newName("vol-2");
    });
    expect(await world.migratedPlugins()).toBe(direction.listedAfter);
    await direction.attachNew(world, "vol-2");
    await world.clock.run(second.volumes.waitForAttachAndMount(waiting, world.signal));
    await second.stop();
  });

  it("are held back through a crash, and when the CSINode is lost (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first, pod } = await nodeWithVolume(direction);
    first.crash();
    await world.kube.delete(resources.csiNodes, { name: "node-1" }, world);
    const second = world.start(direction.after);
    await world.until("ready", () => isReady(world, second));
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    second.crash();
    const third = world.start(direction.after);
    await world.until("mounted", () => third.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    await third.stop();
  });

  it("flipped back before anything happened change nothing (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first, pod } = await nodeWithVolume(direction);
    await first.stop();
    const second = world.start(direction.after);
    await world.until("ready", () => isReady(world, second));
    await second.stop();
    const third = world.start(direction.before);
    await world.until("mounted", () => third.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    await world.until(
      "reported",
      async () => (await world.condition(migrationPendingCondition))?.status === "False",
    );
    expect(await world.migratedPlugins()).toBe(direction.listedBefore);
    await third.stop();
  });
});

describe("going back to in-tree", () => {
  it("does not wait for a volume whose PersistentVolume is CSI's own (node-agent.md 2.4; contract.md C1)", async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
    const first = world.start(on);
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    world.running.add(pod.metadata.uid);
    await first.stop();
    const second = world.start(off);
    await world.until("ready", () => isReady(world, second));
    expect(await world.migratedPlugins()).toBeUndefined();
    await world.until("mounted", () => second.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    expect(await world.mounts()).toHaveLength(2);
    await second.stop();
  });

  // The volume's PersistentVolume cannot be read: it counts as one that crosses. The CSINode listed the plugin above an in-tree mount (C5).
  it("has not to be done by a node that lost its CSINode and has in-tree volumes beside one of the driver (node-agent.md 2.4; contract.md C1, C5)", async () => {
    const { world, agent: first, pod } = await nodeWithVolume(directions[0] as Direction);
    await world.volume("native", { csi: { driver: driverName, volumeHandle: "native", fsType: "ext4" } });
    const other = await world.pod("q", ["native"]);
    await world.attachCsi("native");
    await world.clock.run(first.volumes.waitForAttachAndMount(other, world.signal));
    world.running.add(other.metadata.uid);
    first.crash();
    await world.kube.delete(resources.csiNodes, { name: "node-1" }, world);
    await world.removeVolume("native");
    const second = world.start(off);
    await world.until("ready", () => isReady(world, second));
    expect(await world.migratedPlugins()).toBeUndefined();
    await world.until("mounted", () => second.volumes.mountedVolumes(pod.metadata.uid).size === 1);
    await second.stop();
  });

  it("waits for the VolumeAttachment of a volume that the status no longer names (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent: first } = await nodeWithVolume(directions[1] as Direction);
    await first.stop();
    const second = world.start(off);
    await world.until("ready", () => isReady(world, second));
    world.running.clear();
    await world.deletePod("p");
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.reportDetached(csiName("vol-1"));
    await world.clock.advance(60_000);
    expect(await world.migratedPlugins()).toBe(plugin);
    await world.detachCsi("vol-1");
    await world.until("changed over", async () => (await world.migratedPlugins()) === undefined, 10_000);
    await second.stop();
  });
});

describe("the announcement of a change to CSI", () => {
  const announced = async (world: NodeWorld) => pluginsChangingOver(await world.node());
  /** Does something the first time that the agent announces the change, right before that is stored. */
  const beforeAnnouncement = (world: NodeWorld, action: () => Promise<unknown>) => {
    const { kube } = world;
    const patch = kube.patch.bind(kube);
    let isFirst = true;
    kube.patch = async (resource, ref, change, options) => {
      if (isFirst && JSON.stringify(change.body).includes(`"${changingOverAnnotation}":"`)) {
        isFirst = false;
        await action();
      }
      return patch(resource, ref, change, options);
    };
  };

  it("finds what the controller has recorded since the agent looked: the node stays as it is (node-agent.md 2.4; contract.md C1)", async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    const first = world.start(off);
    await world.until("ready", () => isReady(world, first));
    await first.stop();
    const name = inTreeName("vol-1");
    beforeAnnouncement(world, () => world.patchNode({ [uncertainVolumesAnnotation]: name }));
    const second = world.start(on);
    await world.until("ready", () => isReady(world, second));
    await world.clock.advance(30_000);
    expect(await world.migratedPlugins()).toBeUndefined();
    expect(await announced(world)).toEqual([]);
    await world.patchNode({ [uncertainVolumesAnnotation]: null });
    await world.until("changed over", async () => (await world.migratedPlugins()) === plugin, 10_000);
    await world.until("reported", async () => (await announced(world)).length === 0);
    await second.stop();
  });

  it("of an agent that died is taken away by the next (node-agent.md 2.4; contract.md C1)", async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    const first = world.start(off);
    await world.until("ready", () => isReady(world, first));
    await first.stop();
    await world.patchNode({ [changingOverAnnotation]: plugin });
    const second = world.start(off);
    await world.until("ready", () => isReady(world, second));
    expect(await announced(world)).toEqual([]);
    expect(await world.migratedPlugins()).toBeUndefined();
    await second.stop();
  });
});

describe("an API server that is restored from a backup while the agent runs", () => {
  const ref = { name: "node-1" };
  /** The watch of the Node cannot go on. */
  const restored = async (world: NodeWorld, annotations: Parameters<NodeWorld["patchNode"]>[0] = {}) => {
    world.watchesExpire = true;
    await world.patchNode({ ...annotations, "example.com/restored": "yes" });
  };
  const mountedByCsi = async () => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    await world.volume("vol-1");
    const agent = world.start(on);
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    return { world, agent };
  };

  it("has, a minute later, a CSINode with the plugins and drivers of the agent again (node-agent.md 2.4; contract.md C1)", async () => {
    const { world, agent } = await mountedByCsi();
    const csiNode = await world.kube.get(resources.csiNodes, ref, world);
    if (csiNode === undefined) throw new Error("no CSINode");
    const older = { ...csiNode, metadata: { ...csiNode.metadata, annotations: {} }, spec: { drivers: [] } };
    await world.kube.update(resources.csiNodes, older, world);
    await restored(world);
    await world.until("it is as it was", async () => (await world.migratedPlugins()) === plugin, 61_000);
    const again = await world.kube.get(resources.csiNodes, ref, world);
    expect(again?.spec).toEqual(csiNode.spec);
    await agent.stop();
  });

  it("does not get back the entry of a driver that has gone (node-agent.md 2.3)", async () => {
    const { world, agent } = await mountedByCsi();
    await world.removeRegistration();
    await world.clock.advance(10_000);
    await restored(world);
    await world.clock.advance(60_000);
    expect((await world.kube.get(resources.csiNodes, ref, world))?.spec.drivers ?? []).toEqual([]);
    await agent.stop();
  });

  it("keeps no announcement that has been taken back: in-tree disks are attached again (node-agent.md 2.4)", async () => {
    const world = await NodeWorld.create();
    const agent = world.start(off);
    await world.until("ready", () => isReady(world, agent));
    await restored(world, { [changingOverAnnotation]: plugin });
    await world.until("it is gone", async () => pluginsChangingOver(await world.node()).length === 0, 61_000);
    await agent.stop();
  });
});
