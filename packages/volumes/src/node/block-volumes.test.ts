/** Volumes that pods get as devices. Source: docs/behaviour/node-agent.md 7.4, 7.5 and docs/behaviour/csi-plugin.md 10. */
import { CsiStatusError, NodeServiceCapability_RPC_Type } from "@longshore/csi";
import { type PersistentVolume, type Pod, resources, type Stored } from "@longshore/kube";
import { type Host, HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { localVolumePlugin } from "../plugins/local-volume/local-volume-plugin.ts";
import { csiOn, inUse } from "./testing/migrated-node.ts";
import {
  csiName,
  driverName,
  inTreeName,
  NodeWorld,
  type RunningAgent,
  rootDir,
} from "./testing/node-world.ts";
import { failOnce, type TestDriver, testDriver } from "./testing/test-driver.ts";

const devices = "plugins/kubernetes.io/csi/volumeDevices";
const published = (uid: string, id: string) => `${devices}/publish/pv-${id}/${uid}`;
const mapped = (uid: string, id: string) => `${devices}/pv-${id}/dev/${uid}`;
const link = (uid: string, id: string) => `pods/${uid}/volumeDevices/kubernetes.io~csi/pv-${id}`;

/** A node whose driver has registered, with a CSI block volume. */
async function blockNode(
  driverOf: (host: Host) => TestDriver = testDriver,
  more: Partial<NonNullable<PersistentVolume["spec"]>> = {},
): Promise<{ world: NodeWorld; agent: RunningAgent }> {
  const world = await NodeWorld.create();
  await world.serveDriver(driverOf(world.host));
  await world.blockVolume("vol-1", more);
  const agent = world.start(csiOn);
  await world.until("registered", () => world.registrations.length > 0);
  return { world, agent };
}

const testDriverOf = (options: Parameters<typeof testDriver>[1]) => (host: Host) => testDriver(host, options);

const claimOf = (world: NodeWorld) =>
  world.kube.get(resources.persistentVolumeClaims, { namespace: "default", name: "claim-vol-1" }, world);

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
      new Map([
        ["data-vol-1", { path: `${rootDir}/${link(uid, "vol-1")}`, readOnly: false, volumeName: "pv-vol-1" }],
      ]),
    );
    expect(await world.host.readLink(`${rootDir}/${link(uid, "vol-1")}`)).toBe(
      `${rootDir}/${mapped(uid, "vol-1")}`,
    );
    expect((await world.host.stat(`${rootDir}/${mapped(uid, "vol-1")}`))?.kind).toBe("blockDevice");
    const succeeded = 'MapVolume.MapPodDevice succeeded for volume "pv-vol-1"';
    const { items } = await world.kube.list(resources.events, world);
    expect(items.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      `SuccessfulMountVolume: ${succeeded} globalMapPath "${rootDir}/${devices}/pv-vol-1/dev"`,
      `SuccessfulMountVolume: ${succeeded} volumeMapPath "${rootDir}/${link(uid, "vol-1")}"`,
    ]);
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

describe("a device of a driver", () => {
  it("that may only be read is published so", async () => {
    const { world, agent } = await blockNode();
    await world.attachCsi("vol-1");
    const claim = { claimName: "claim-vol-1", readOnly: true };
    const pod = await world.blockPod("p", ["vol-1"], {
      volumes: [{ name: "data-vol-1", persistentVolumeClaim: claim }],
    });
    await mappedFor(world, agent, pod);
    expect(world.driver.lastPublish?.readonly).toBe(true);
    expect(agent.volumes.mountedVolumes(pod.metadata.uid).get("data-vol-1")?.readOnly).toBe(true);
    await agent.stop();
  });

  it("that stages nothing is published with the staging path nevertheless", async () => {
    const { world, agent } = await blockNode(testDriverOf({ staging: false }));
    await world.attachCsi("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    await mappedFor(world, agent, pod);
    expect(world.driver.calls.slice(1)).toEqual(["NodePublishVolume vol-1"]);
    expect(world.driver.lastStagingPath).toBe(`${rootDir}/${devices}/staging/pv-vol-1`);
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls.slice(2)).toEqual(["NodeUnpublishVolume vol-1"]);
    await agent.stop();
  });

  it("grows before a pod gets it, where the claim says that it is smaller than the volume", async () => {
    const { world, agent } = await blockNode(
      testDriverOf({ rpcs: [NodeServiceCapability_RPC_Type.EXPAND_VOLUME] }),
      {
        capacity: { storage: "2Mi" },
      },
    );
    const ref = { namespace: "default", name: "claim-vol-1" };
    const body = { status: { capacity: { storage: "1Mi" } } };
    const patch = { type: "merge" as const, body };
    const options = { subresource: "status" as const, signal: world.signal };
    await world.kube.patch(resources.persistentVolumeClaims, ref, patch, options);
    await world.attachCsi("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    await mappedFor(world, agent, pod);
    expect(world.driver.calls.slice(1)).toEqual([
      "NodeStageVolume vol-1",
      "NodePublishVolume vol-1",
      "NodeExpandVolume vol-1",
    ]);
    expect(world.driver.lastExpand).toEqual({
      volumePath: `${rootDir}/${published(pod.metadata.uid, "vol-1")}`,
      stagingPath: `${rootDir}/${devices}/staging/pv-vol-1`,
      isBlock: true,
    });
    const claim = await world.kube.get(resources.persistentVolumeClaims, ref, world);
    expect(claim?.status?.capacity).toEqual({ storage: "2Mi" });
    await agent.stop();
  });

  it("grows while a pod has it, without a new mapping", async () => {
    const { world, agent } = await blockNode(
      testDriverOf({ rpcs: [NodeServiceCapability_RPC_Type.EXPAND_VOLUME] }),
    );
    await world.attachCsi("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    await mappedFor(world, agent, pod);
    await world.growVolume("vol-1");
    await world.until("grown", async () => (await claimOf(world))?.status?.capacity?.storage === "2Mi");
    expect(world.driver.calls.slice(1)).toEqual([
      "NodeStageVolume vol-1",
      "NodePublishVolume vol-1",
      "NodeExpandVolume vol-1",
    ]);
    expect(world.driver.lastExpand).toEqual({
      volumePath: `${rootDir}/${published(pod.metadata.uid, "vol-1")}`,
      stagingPath: `${rootDir}/${devices}/staging/pv-vol-1`,
      isBlock: true,
    });
    expect(await world.eventReasons()).toContain("Pod FileSystemResizeSuccessful");
    await agent.stop();
  });

  it("leaves no directory of a pod that is gone", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    await world.deletePod("p");
    await everythingGone(world);
    const directory = `${rootDir}/pods/${pod.metadata.uid}`;
    await world.until("removed", async () => (await world.host.stat(directory)) === undefined);
    await agent.stop();
  });

  it("is not given a group, whatever fsGroup the pod asks for", async () => {
    const { world, agent } = await blockNode();
    await world.attachCsi("vol-1");
    const changed: string[] = [];
    const chownTree = world.host.chownTree.bind(world.host);
    world.host.chownTree = async (path, gid) => {
      changed.push(path);
      await chownTree(path, gid);
    };
    const pod = await world.blockPod("p", ["vol-1"], { securityContext: { fsGroup: 2000 } });
    await mappedFor(world, agent, pod);
    expect(changed).toEqual([]);
    await agent.stop();
  });
});

describe("an in-tree block volume", () => {
  const maps = "plugins/kubernetes.io/aws-ebs/volumeDevices";

  async function inTreeNode(): Promise<{ world: NodeWorld; agent: RunningAgent }> {
    const world = await NodeWorld.create();
    await world.volume("vol-1", { ...ebsSource("vol-1"), volumeMode: "Block" });
    return { world, agent: world.start() };
  }
  const ebsSource = (id: string) => ({ awsElasticBlockStore: { volumeID: `aws://us-east-1a/${id}` } });

  it("is the attached device, bound for the pod, and is never formatted", async () => {
    const { world, agent } = await inTreeNode();
    await world.attachInTree("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    await mappedFor(world, agent, pod);
    expect(await world.mounts()).toEqual([`${maps}/aws/us-east-1a/vol-1/${uid}`]);
    expect(await world.host.fileSystemOf("/dev/loop0")).toBeUndefined();
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    expect(await world.host.readDirectory(`${rootDir}/${maps}/aws/us-east-1a`)).toEqual([]);
    await agent.stop();
  });

  it("refuses writes only while no pod of the node may write", async () => {
    const { world, agent } = await inTreeNode();
    await world.attachInTree("vol-1");
    const set: boolean[] = [];
    world.host.setDeviceReadOnly = async (_device, readOnly) => void set.push(readOnly);
    const volumes = [
      { name: "data-vol-1", persistentVolumeClaim: { claimName: "claim-vol-1", readOnly: true } },
    ];
    await mappedFor(world, agent, await world.blockPod("reader", ["vol-1"], { volumes }));
    await mappedFor(world, agent, await world.blockPod("writer", ["vol-1"]));
    await mappedFor(world, agent, await world.blockPod("late", ["vol-1"], { volumes }));
    expect(set).toEqual([true, false, false]);
    await agent.stop();
  });

  it.each(["running", "gone"])("is found again after a crash when its pod is %s", async (fate) => {
    const { world, agent } = await inTreeNode();
    await world.attachInTree("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    await mappedFor(world, agent, pod);
    agent.crash();
    if (fate === "gone") await world.deletePod("p");
    else world.running.add(uid);
    const second = world.start();
    if (fate === "gone") {
      await world.until("gone", () => second.volumes.podVolumesGone(uid));
      await world.until("not in use", async () => (await inUse(world)).length === 0);
      expect(await world.mounts()).toEqual([]);
    } else {
      await world.until("mapped", () => second.volumes.mountedVolumes(uid).size === 1);
      expect(world.postedInUse.every((names) => names.includes(inTreeName("vol-1")))).toBe(true);
    }
    await second.stop();
  });

  it("holds a crossing of the node until it is unmapped, and is mapped by the driver afterwards", async () => {
    const { world, agent } = await inTreeNode();
    await world.serveDriver();
    await world.attachInTree("vol-1");
    const pod = await world.blockPod("p", ["vol-1"]);
    await mappedFor(world, agent, pod);
    world.running.add(pod.metadata.uid);
    await agent.stop();
    const second = world.start(csiOn);
    await world.clock.advance(30_000);
    expect((await world.migratedPlugins()) ?? "").toBe("");
    expect(await world.mounts()).toHaveLength(1);
    world.running.clear();
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    await world.reportDetached(inTreeName("vol-1"));
    await world.until("crossed", async () => (await world.migratedPlugins()) === "kubernetes.io/aws-ebs");
    const next = await world.blockPod("q", ["vol-1"]);
    await world.attachCsi("vol-1");
    await mappedFor(world, second, next);
    expect(await world.mounts()).toEqual(
      [published(next.metadata.uid, "vol-1"), mapped(next.metadata.uid, "vol-1")].sort(),
    );
    await second.stop();
  });

  it("is refused by a plugin without block volumes", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1", { hostPath: { path: "/data" }, volumeMode: "Block" });
    const agent = world.start();
    const pod = await world.blockPod("p", ["vol-1"]);
    const wait = world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await expect(wait).rejects.toThrow("plugin kubernetes.io/host-path has no block volumes");
    await agent.stop();
  });
});

describe("what may be there stays known", () => {
  it("a published device whose mapping failed is unpublished when the pod is gone", async () => {
    const { world, agent } = await blockNode();
    const bindMount = world.host.bindMount.bind(world.host);
    world.host.bindMount = async (source, target, options) => {
      if (target.includes("/dev/")) throw new HostError("bindMount", target, "EPERM");
      await bindMount(source, target, options);
    };
    await world.attachCsi("vol-1");
    await world.blockPod("p", ["vol-1"]);
    await world.until("published", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.advance(100);
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls).toContain("NodeUnpublishVolume vol-1");
    await agent.stop();
  });

  it("a device is not torn down while something is bound in its directory of mappings", async () => {
    const { world, agent } = await nodeWithDevice();
    const foreign = `${rootDir}/${mapped("other", "vol-1")}`;
    await world.host.writeFileAtomic(foreign, "");
    await world.host.bindMount("/dev/loop0", foreign);
    await world.deletePod("p");
    await world.until("unpublished", () => world.driver.calls.includes("NodeUnpublishVolume vol-1"));
    await world.clock.advance(5_000);
    expect(world.driver.calls).not.toContain("NodeUnstageVolume vol-1");
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    await world.host.unmount(foreign);
    await everythingGone(world);
    await agent.stop();
  });

  it("a device that was staged before a crash is unstaged, although staging it was refused since", async () => {
    const { world, agent, pod } = await nodeWithDevice();
    agent.crash();
    world.running.add(pod.metadata.uid);
    world.driver.before = (rpc) => {
      if (rpc === "NodeStageVolume") throw new CsiStatusError("INVALID_ARGUMENT", "no");
    };
    const second = world.start(csiOn);
    await world.until(
      "refused",
      () => world.driver.calls.filter((c) => c.startsWith("NodeStage")).length === 2,
    );
    await world.clock.settle();
    world.running.clear();
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls.slice(-2)).toEqual(["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]);
    await second.stop();
  });

  it("a device that is published is unpublished, although the driver said that it failed for good", async () => {
    const { world, agent } = await blockNode();
    world.driver.after = (rpc) => {
      if (rpc === "NodePublishVolume") throw new CsiStatusError("INTERNAL", "no");
    };
    await world.attachCsi("vol-1");
    await world.blockPod("p", ["vol-1"]);
    await world.until("published", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.advance(100);
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls).toContain("NodeUnpublishVolume vol-1");
    await agent.stop();
  });

  it("a device whose driver failed for good and left the file at its target is unpublished, and unstaged after it", async () => {
    const { world, agent } = await blockNode();
    const bindMount = world.host.bindMount.bind(world.host);
    world.host.bindMount = async (source, target, options) => {
      // It is the driver that binds there.
      if (target.includes("/publish/")) throw new CsiStatusError("INTERNAL", "EIO");
      await bindMount(source, target, options);
    };
    await world.attachCsi("vol-1");
    await world.blockPod("p", ["vol-1"]);
    await world.until("tried", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.advance(100);
    await world.deletePod("p");
    await everythingGone(world);
    expect(world.driver.calls.slice(-2)).toEqual(["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]);
    await agent.stop();
  });

  it("a disk under a PersistentVolume's name is mapped only after the disk before it was unstaged", async () => {
    const { world, agent } = await nodeWithDevice();
    failOnce(world.driver, "NodeUnstageVolume", "INTERNAL");
    await world.deletePod("p");
    await world.removeVolume("vol-1");
    await world.blockVolume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-2" } });
    const pod = await world.blockPod("q", ["vol-1"]);
    await world.attachCsi("vol-2");
    await mappedFor(world, agent, pod);
    expect(world.driver.calls.slice(4)).toEqual([
      "NodeUnstageVolume vol-1",
      "NodeUnstageVolume vol-1",
      "NodeStageVolume vol-2",
      "NodePublishVolume vol-2",
    ]);
    await agent.stop();
  });

  it("a disk that a pod has as a device is not mounted for another, which waits for it", async () => {
    const { world, agent } = await nodeWithDevice();
    await world.removeVolume("vol-1");
    await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
    const second = await world.pod("q", ["vol-1"]);
    const events = async () => (await world.kube.list(resources.events, world)).items.map((e) => e.message);
    const refusal = "the volume is or may be in use as a device";
    await world.until("refused", async () => (await events()).some((text) => text?.includes(refusal)));
    expect(world.driver.calls).toHaveLength(3);
    await world.deletePod("p");
    await mappedFor(world, agent, second);
    await agent.stop();
  });
});

it("a local block volume refuses writes only while no pod of the node may write (node-agent.md 7.4; pod-volumes.md 8.2)", async () => {
  const world = await NodeWorld.create();
  await world.host.truncateFile("/disk", 1 << 20);
  const path = await world.host.attachLoop("/disk");
  const matchExpressions = [{ key: "no-such-label", operator: "DoesNotExist" }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  await world.volume("vol-1", { local: { path }, volumeMode: "Block", nodeAffinity });
  world.furtherPlugins = () => [localVolumePlugin()];
  const agent = world.start();
  const set: string[] = [];
  world.host.setDeviceReadOnly = async (device, readOnly) => void set.push(`${device} ${readOnly}`);
  const volumes = [
    { name: "data-vol-1", persistentVolumeClaim: { claimName: "claim-vol-1", readOnly: true } },
  ];
  await mappedFor(world, agent, await world.blockPod("reader", ["vol-1"], { volumes }));
  await mappedFor(world, agent, await world.blockPod("writer", ["vol-1"]));
  await mappedFor(world, agent, await world.blockPod("late", ["vol-1"], { volumes }));
  expect(set).toEqual([`${path} true`, `${path} false`, `${path} false`]);
  expect(await world.mounts()).toHaveLength(3);
  await agent.stop();
});
