/** The node agent's ordering guarantees. Source: docs/behaviour/node-agent.md 11 and docs/behaviour/csi-plugin.md 17. */
import { type CSIDriver, resources } from "@longshore/kube";
import { HostError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { nodeIDAnnotation } from "./csi-node/decide-node-info-step.ts";
import {
  csiName,
  driverName,
  inTreeName,
  NodeWorld,
  nodeName,
  type RunningAgent,
  registrationSocket,
  rootDir,
} from "./testing/node-world.ts";
import { failOnce, testDriver } from "./testing/test-driver.ts";

const csiOn = { CSIMigration: true, CSIMigrationAWS: true };
const staging = (id: string) => `plugins/kubernetes.io/csi/pv/pv-${id}/globalmount`;
const published = (uid: string, id: string) => `pods/${uid}/volumes/kubernetes.io~csi/pv-${id}/mount`;
const globalMount = (id: string) => `plugins/kubernetes.io/aws-ebs/mounts/aws/us-east-1a/${id}`;
const bound = (uid: string, id: string) => `pods/${uid}/volumes/kubernetes.io~aws-ebs/pv-${id}`;

/** A migrated node with a registered driver. */
async function migratedNode(): Promise<{ world: NodeWorld; agent: RunningAgent }> {
  const world = await NodeWorld.create();
  await world.serveDriver();
  const agent = world.start(csiOn);
  await world.until("registered", () => world.registrations.length > 0);
  return { world, agent };
}

async function inUse(world: NodeWorld): Promise<readonly string[]> {
  return (await world.node()).status?.volumesInUse ?? [];
}

async function exists(world: NodeWorld, path: string): Promise<boolean> {
  return (await world.host.stat(`${rootDir}/${path}`)) !== undefined;
}

describe("an in-tree EBS volume", () => {
  it("is mounted once reported in use and attached, and unmounted when the pod is gone (node-agent.md 7.2, 7.3, 8)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    await world.until("in use", async () => (await inUse(world)).includes(inTreeName("vol-1")));
    expect(await world.mounts()).toEqual([]);
    await world.attachInTree("vol-1");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await world.mounts()).toEqual([globalMount("vol-1"), bound(uid, "vol-1")]);
    expect(agent.volumes.mountedVolumes(uid)).toEqual(
      new Map([
        [
          "data-vol-1",
          { path: `${rootDir}/${bound(uid, "vol-1")}`, readOnly: false, volumeName: "pv-vol-1" },
        ],
      ]),
    );
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(uid));
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    await agent.stop();
  });

  it("keeps its file system and data when it is mounted again (node-agent.md 7.3; contract.md C3)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    await world.attachInTree("vol-1");
    const first = await world.pod("a", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(first, world.signal));
    await world.host.appendFileDurable(`${rootDir}/${bound(first.metadata.uid, "vol-1")}/data`, "written");
    await world.deletePod("a");
    await world.until("gone", () => agent.volumes.podVolumesGone(first.metadata.uid));
    const second = await world.pod("b", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(second, world.signal));
    const path = `${rootDir}/${bound(second.metadata.uid, "vol-1")}/data`;
    expect(await world.host.readFile(path)).toBe("written");
    await agent.stop();
  });

  it("stays mounted while a container of a deleted pod still runs (node-agent.md 4.1)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    await world.attachInTree("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    world.running.add(pod.metadata.uid);
    await world.deletePod("p");
    await world.clock.advance(60_000);
    expect(await world.mounts()).toHaveLength(2);
    world.running.delete(pod.metadata.uid);
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid), 5_000);
    await agent.stop();
  });

  it.each(["running", "gone"])(
    "is found again after a crash when its pod is %s (node-agent.md 9)",
    async (fate) => {
      const world = await NodeWorld.create();
      await world.volume("vol-1");
      const first = world.start();
      await world.attachInTree("vol-1");
      const pod = await world.pod("p", ["vol-1"]);
      const { uid } = pod.metadata;
      await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
      first.crash();
      if (fate === "gone") await world.deletePod("p");
      else world.running.add(uid);
      const second = world.start();
      if (fate === "gone") {
        await world.until("gone", () => second.volumes.podVolumesGone(uid));
        await world.until("not in use", async () => (await inUse(world)).length === 0);
        expect(await world.mounts()).toEqual([]);
      } else {
        await world.until("mounted", () => second.volumes.mountedVolumes(uid).size === 1);
        expect(await world.mounts()).toEqual([globalMount("vol-1"), bound(uid, "vol-1")]);
        expect(world.postedInUse.every((names) => names.includes(inTreeName("vol-1")))).toBe(true);
      }
      await second.stop();
    },
  );

  it("is not unmounted under a running pod when a restarted agent cannot read the claim (node-agent.md 9)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const first = world.start();
    await world.attachInTree("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    world.running.add(pod.metadata.uid);
    first.crash();
    const ref = { namespace: "default", name: "claim-vol-1" };
    const body = { status: { phase: "Lost" } };
    const patch = { type: "merge" as const, body };
    const options = { subresource: "status" as const, signal: world.signal };
    await world.kube.patch(resources.persistentVolumeClaims, ref, patch, options);
    const second = world.start();
    await world.clock.advance(120_000);
    expect(await world.mounts()).toHaveLength(2);
    expect(await inUse(world)).toEqual([inTreeName("vol-1")]);
    await second.stop();
  });

  it("whose device never appears is given up with its pod (node-agent.md 3, 7.3)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    const pod = await world.pod("p", ["vol-1"]);
    await world.reportAttached(inTreeName("vol-1"), "/dev/loop99");
    const wait = agent.volumes.waitForAttachAndMount(pod, world.signal);
    await expect(world.clock.run(wait)).rejects.toThrow(/unmounted volumes=\[data-vol-1\]/);
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(pod.metadata.uid), 5_000);
    await world.until("not in use", async () => (await inUse(world)).length === 0, 5_000);
    await agent.stop();
  });

  it("is offered to no container of a pod that ends (node-agent.md 4.1)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const agent = world.start();
    await world.attachInTree("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    world.running.add(pod.metadata.uid);
    const ref = { namespace: "default", name: "p" };
    await world.kube.delete(resources.pods, ref, { signal: world.signal, gracePeriodSeconds: 30 });
    await world.clock.advance(1000);
    expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
    expect(await world.mounts()).toHaveLength(2);
    await agent.stop();
  });

  it("that lost its pod between device mount and bind mount is unmounted after a crash (node-agent.md 9)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    const device = await world.disk("vol-1");
    const path = `${rootDir}/${globalMount("vol-1")}`;
    await world.host.makeDirectory(path);
    await world.host.format(device, "ext4");
    await world.host.mountDevice(device, path, { fsType: "ext4" });
    await world.reportAttached(inTreeName("vol-1"), device);
    const agent = world.start();
    await world.until("unmounted", async () => (await world.mounts()).length === 0);
    await world.until("out of use", () => agent.volumes.volumesInUse()?.length === 0);
    expect(world.postedInUse.length === 0 || world.postedInUse[0]?.includes(inTreeName("vol-1"))).toBe(true);
    await agent.stop();
  });
});

describe("a CSI volume", () => {
  it("is staged before it is published, and leaves volumesInUse after unpublish and unstage (node-agent.md 11.4)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    await world.attachCsi("vol-1");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await world.mounts()).toEqual([staging("vol-1"), published(uid, "vol-1")]);
    const inUseAtUnstage: (readonly string[])[] = [];
    world.driver.before = async (rpc) => {
      if (rpc === "NodeUnstageVolume") inUseAtUnstage.push(await inUse(world));
    };
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(inUseAtUnstage).toEqual([[csiName("vol-1")]]);
    expect(world.driver.calls).toEqual([
      "NodeGetInfo",
      "NodeStageVolume vol-1",
      "NodePublishVolume vol-1",
      "NodeUnpublishVolume vol-1",
      "NodeUnstageVolume vol-1",
    ]);
    expect(await exists(world, "plugins/kubernetes.io/csi/pv/pv-vol-1")).toBe(false);
    expect(await exists(world, `pods/${uid}/volumes/kubernetes.io~csi/pv-vol-1`)).toBe(false);
    await agent.stop();
  });

  it("is unstaged only after every pod's unpublish (node-agent.md 11.4)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pods = [await world.pod("a", ["vol-1"]), await world.pod("b", ["vol-1"])];
    await world.attachCsi("vol-1");
    for (const pod of pods) await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    world.driver.calls.length = 0;
    failOnce(world.driver, "NodeUnpublishVolume", "INTERNAL");
    await world.deletePod("a");
    await world.deletePod("b");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(world.driver.calls).toEqual([
      "NodeUnpublishVolume vol-1",
      "NodeUnpublishVolume vol-1",
      "NodeUnpublishVolume vol-1",
      "NodeUnstageVolume vol-1",
    ]);
    await agent.stop();
  });

  it("is not mounted before the posted volumesInUse names it (node-agent.md 8.3)", async () => {
    const { world, agent } = await migratedNode();
    world.posting = false;
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.clock.advance(60_000);
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    world.posting = true;
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(world.driver.calls).toContain("NodePublishVolume vol-1");
    await agent.stop();
  });

  it("is not mounted while a Node that was restored from a backup does not name it, whatever was posted before (node-agent.md 8.3, contract.md C2)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.until("posted", async () => (await inUse(world)).includes(csiName("vol-1")));
    // The agent does not look at the Node again yet: it was read or written shortly before.
    world.posting = false;
    const body = { status: { volumesInUse: null } };
    const patch = { type: "merge", body } as const;
    await world.kube.patch(resources.nodes, { name: nodeName }, patch, {
      subresource: "status",
      signal: world.signal,
    });
    await world.attachCsi("vol-1");
    await world.clock.advance(60_000);
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    world.posting = true;
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    expect(world.driver.calls).toContain("NodePublishVolume vol-1");
    await agent.stop();
  });

  it("is not mounted while volumesAttached names another form of it (node-agent.md 7.2)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    await world.pod("p", ["vol-1"]);
    await world.attachInTree("vol-1");
    await world.clock.advance(60_000);
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    await agent.stop();
  });

  it("that only a stale cache shows as attached is not looked for without a pause (node-agent.md 7.2)", async () => {
    const world = await NodeWorld.create();
    await world.volume("vol-1");
    await world.attachInTree("vol-1");
    const agent = world.start();
    await world.clock.advance(1_000);
    let goOn = () => {};
    world.watchesHeld = new Promise((resolve) => {
      goOn = resolve;
    });
    const setAttached = (volumesAttached: object[]) =>
      world.kube.patch(
        resources.nodes,
        { name: nodeName },
        { type: "merge", body: { status: { volumesAttached } } },
        { subresource: "status", signal: world.signal },
      );
    const attached = (await world.node()).status?.volumesAttached ?? [];
    await setAttached([]);
    const pod = await world.pod("p", ["vol-1"]);
    world.requests.length = 0;
    await world.clock.advance(60_000);
    const looks = world.requests.filter((request) => request === "get nodes").length;
    expect(looks).toBeGreaterThan(1);
    expect(looks).toBeLessThan(20);
    goOn();
    await setAttached([...attached]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await agent.stop();
  });

  it("is unpublished when publishing was uncertain and its pod is deleted, and never starts it (node-agent.md 11.5, 11.6)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    // The answer never comes.
    world.driver.before = (rpc) => (rpc === "NodePublishVolume" ? new Promise(() => {}) : undefined);
    await world.attachCsi("vol-1");
    await world.until("publishing", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.advance(121_000);
    expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(world.driver.calls.slice(-2)).toEqual(["NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"]);
    expect(agent.volumes.podVolumesGone(pod.metadata.uid)).toBe(true);
    await agent.stop();
  });

  it.each([
    { code: "DEADLINE_EXCEEDED" as const, kept: true },
    { code: "INVALID_ARGUMENT" as const, kept: false },
  ])(
    "after a failed stage with $code its directory is kept: $kept (csi-plugin.md 8.2)",
    async ({ code, kept }) => {
      const { world, agent } = await migratedNode();
      await world.volume("vol-1");
      const pod = await world.pod("p", ["vol-1"]);
      failOnce(world.driver, "NodeStageVolume", code);
      await world.attachCsi("vol-1");
      await world.until("staging failed", () => world.driver.calls.includes("NodeStageVolume vol-1"));
      await world.clock.settle();
      expect(await exists(world, staging("vol-1"))).toBe(kept);
      expect(await exists(world, "plugins/kubernetes.io/csi/pv/pv-vol-1/vol_data.json")).toBe(kept);
      await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
      await agent.stop();
    },
  );

  it("that failed to stage for good and whose pod went is not unstaged (node-agent.md 5)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    await world.pod("p", ["vol-1"]);
    failOnce(world.driver, "NodeStageVolume", "INVALID_ARGUMENT");
    await world.attachCsi("vol-1");
    await world.until("staging failed", () => world.driver.calls.includes("NodeStageVolume vol-1"));
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(world.driver.calls).not.toContain("NodeUnstageVolume vol-1");
    await agent.stop();
  });

  it("waits for its driver to register, to be mounted and to be unmounted (csi-plugin.md 12)", async () => {
    const world = await NodeWorld.create();
    const first = world.start(csiOn);
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.clock.advance(30_000);
    expect(first.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
    await world.serveDriver();
    await world.until("mounted", () => first.volumes.mountedVolumes(pod.metadata.uid).size === 1, 7_000);
    await world.removeRegistration();
    await world.until("deregistered", async () => {
      const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
      return csiNode?.spec.drivers.length === 0;
    });
    await world.deletePod("p");
    await world.clock.advance(60_000);
    expect(first.volumes.podVolumesGone(pod.metadata.uid)).toBe(false);
    expect(await inUse(world)).toEqual([csiName("vol-1")]);
    await world.placeRegistration();
    await world.until("not in use", async () => (await inUse(world)).length === 0, 10_000);
    await first.stop();
  });

  it("that waits for an attach is mounted once its driver needs none (node-agent.md 4.1; csi-plugin.md 3)", async () => {
    const { world, agent } = await migratedNode();
    world.driver.device = await world.disk("vol-1");
    await world.volume("vol-1", { csi: { driver: driverName, volumeHandle: "vol-1", fsType: "ext4" } });
    const pod = await world.pod("p", ["vol-1"]);
    await world.until("in use", async () => (await inUse(world)).length === 1);
    const spec = { attachRequired: false };
    await world.kube.create(resources.csiDrivers, { metadata: { name: driverName }, spec }, world);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await world.until("not in use", async () => (await inUse(world)).length === 0);
  });

  it("of a driver without attach needs no VolumeAttachment (csi-plugin.md 3)", async () => {
    const { world, agent } = await migratedNode();
    await world.kube.create(
      resources.csiDrivers,
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "CSIDriver",
        metadata: { name: driverName },
        spec: { attachRequired: false, podInfoOnMount: true },
      },
      world,
    );
    world.driver.device = await world.disk("vol-1");
    const source = {
      driver: driverName,
      volumeHandle: "vol-1",
      fsType: "ext4",
      volumeAttributes: { color: "blue" },
      nodePublishSecretRef: { namespace: "default", name: "s" },
    };
    await world.volume("vol-1", { csi: source });
    const secret = { metadata: { name: "s", namespace: "default" }, data: { key: "aGVsbG8=" } };
    await world.kube.create(resources.secrets, { apiVersion: "v1", kind: "Secret", ...secret }, world);
    const pod = await world.pod("p", ["vol-1"]);
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await inUse(world)).toEqual([]);
    expect(world.requests.filter((request) => request.endsWith("volumeattachments"))).toEqual([]);
    expect(world.driver.lastPublish).toEqual({
      context: {
        color: "blue",
        "csi.storage.k8s.io/pod.name": "p",
        "csi.storage.k8s.io/pod.namespace": "default",
        "csi.storage.k8s.io/pod.uid": pod.metadata.uid,
        "csi.storage.k8s.io/serviceAccount.name": pod.spec?.serviceAccountName ?? "",
        "csi.storage.k8s.io/ephemeral": "false",
      },
      publishContext: {},
      secrets: { key: "hello" },
      readonly: false,
    });
    await agent.stop();
  });

  it("whose files cannot be given to the fsGroup is unpublished with its pod (csi-plugin.md 9.6)", async () => {
    const world = await NodeWorld.create();
    const chown = world.host.chownTree.bind(world.host);
    let refuse = true;
    world.host.chownTree = async (path, gid, options) => {
      if (refuse) throw new HostError("chownTree", path, "EIO");
      await chown(path, gid, options);
    };
    await world.serveDriver();
    const agent = world.start(csiOn);
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"], { securityContext: { fsGroup: 1000 } });
    await world.attachCsi("vol-1");
    await world.until("published", () => world.driver.calls.includes("NodePublishVolume vol-1"));
    await world.clock.settle();
    expect(agent.volumes.mountedVolumes(pod.metadata.uid).size).toBe(0);
    await world.deletePod("p");
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(world.driver.calls).toContain("NodeUnpublishVolume vol-1");
    expect(await world.mounts()).toEqual([]);
    refuse = false;
    await agent.stop();
  });

  it("is not mounted by an attachment that is being deleted, although it says attached (csi-plugin.md 5)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    const page = await world.kube.list(resources.volumeAttachments, world);
    const name = page.items[0]?.metadata.name ?? "";
    const patch = { type: "merge" as const, body: { metadata: { finalizers: ["test/hold"] } } };
    await world.kube.patch(resources.volumeAttachments, { name }, patch, world);
    await world.kube.delete(resources.volumeAttachments, { name }, world);
    const wait = agent.volumes.waitForAttachAndMount(pod, world.signal);
    await expect(world.clock.run(wait)).rejects.toThrow(/being deleted/);
    expect(world.driver.calls).toEqual(["NodeGetInfo"]);
    await agent.stop();
  });

  const crashPoints = [
    "NodeStageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
  ] as const;
  describe.each(crashPoints)("with a crash at %s", (crashPoint) => {
    it.each(["before", "after"] as const)(
      "%s the driver's work, leaves nothing behind (node-agent.md 9, 11)",
      async (when) => {
        const { world, agent } = await migratedNode();
        await world.volume("vol-1");
        const pod = await world.pod("p", ["vol-1"]);
        const { uid } = pod.metadata;
        let crashed = false;
        world.driver[when] = (rpc) => {
          if (rpc !== crashPoint || crashed) return undefined;
          crashed = true;
          agent.crash();
          return when === "before" ? new Promise(() => {}) : undefined;
        };
        await world.attachCsi("vol-1");
        const isEnd = crashPoint.startsWith("NodeUn");
        if (isEnd) {
          await world.until("mounted", () => agent.volumes.mountedVolumes(uid).size === 1);
          await world.deletePod("p");
        }
        await world.until("crashed", () => crashed);
        const second = world.start(csiOn);
        if (!isEnd) {
          await world.until("mounted after all", () => second.volumes.mountedVolumes(uid).size === 1);
          await world.deletePod("p");
        }
        await world.until("not in use", async () => (await inUse(world)).length === 0);
        expect(await world.mounts()).toEqual([]);
        expect(second.volumes.podVolumesGone(uid)).toBe(true);
        expect(await exists(world, "plugins/kubernetes.io/csi/pv/pv-vol-1")).toBe(false);
        await second.stop();
      },
    );
  });

  it.each(["NodeStageVolume", "NodePublishVolume"] as const)(
    "whose pod goes while the agent is down after a crash in %s is unpublished and unstaged (node-agent.md 9, 11)",
    async (crashPoint) => {
      const { world, agent } = await migratedNode();
      await world.volume("vol-1");
      await world.pod("p", ["vol-1"]);
      let crashed = false;
      world.driver.after = (rpc) => {
        if (rpc !== crashPoint || crashed) return;
        crashed = true;
        agent.crash();
      };
      await world.attachCsi("vol-1");
      await world.until("crashed", () => crashed);
      await world.deletePod("p");
      const second = world.start(csiOn);
      await world.until("not in use", async () => (await inUse(world)).length === 0);
      expect(await world.mounts()).toEqual([]);
      expect(world.driver.calls.at(-1)).toBe("NodeUnstageVolume vol-1");
      await second.stop();
    },
  );
});

describe("an inline in-tree volume", () => {
  const inlinePod = (world: NodeWorld) =>
    world.pod("p", [], {
      containers: [{ name: "c", image: "i", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", awsElasticBlockStore: { volumeID: "vol-9", fsType: "ext4" } }],
    });

  it("is mounted in-tree under its name in the pod (node-agent.md 4.3)", async () => {
    const world = await NodeWorld.create();
    const agent = world.start();
    const pod = await inlinePod(world);
    await world.reportAttached("kubernetes.io/aws-ebs/vol-9", await world.disk("vol-9"));
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect(await world.mounts()).toEqual([
      "plugins/kubernetes.io/aws-ebs/mounts/vol-9",
      `pods/${pod.metadata.uid}/volumes/kubernetes.io~aws-ebs/data`,
    ]);
    await agent.stop();
  });

  it("goes by CSI on a migrated node, and is found again after a crash (csi-plugin.md 4; node-agent.md 9)", async () => {
    const { world, agent } = await migratedNode();
    const pod = await inlinePod(world);
    const { uid } = pod.metadata;
    await world.attachCsi("vol-9");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    expect([...agent.volumes.mountedVolumes(uid).keys()]).toEqual(["data"]);
    agent.crash();
    await world.deletePod("p");
    const second = world.start(csiOn);
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    expect(await world.mounts()).toEqual([]);
    expect(world.driver.calls.slice(-2)).toEqual(["NodeUnpublishVolume vol-9", "NodeUnstageVolume vol-9"]);
    await second.stop();
  });
});

describe("a machine that lost power", () => {
  it.each([
    { way: "in-tree", gates: {}, fate: "stays" },
    { way: "in-tree", gates: {}, fate: "goes" },
    { way: "csi", gates: csiOn, fate: "stays" },
    { way: "csi", gates: csiOn, fate: "goes" },
  ])("has its $way volume back when the pod $fate (node-agent.md 9)", async ({ way, gates, fate }) => {
    const world = await NodeWorld.create();
    await world.serveDriver();
    await world.volume("vol-1");
    const first = world.start(gates);
    const pod = await world.pod("p", ["vol-1"]);
    const { uid } = pod.metadata;
    if (way === "csi") await world.attachCsi("vol-1");
    else await world.attachInTree("vol-1");
    await world.clock.run(first.volumes.waitForAttachAndMount(pod, world.signal));
    const file = `${first.volumes.mountedVolumes(uid).get("data-vol-1")?.path}/data`;
    await world.host.appendFileDurable(file, "written");
    first.crash();
    world.host.losePower();
    expect(await world.mounts()).toEqual([]);
    // The provider attaches the disk again at boot, under the same name.
    await world.disk("vol-1");
    await world.host.makeDirectory(`${rootDir}/plugins_registry`);
    await world.placeRegistration();
    if (fate === "goes") await world.deletePod("p");
    const second = world.start(gates);
    if (fate === "stays") {
      await world.until("mounted", () => second.volumes.mountedVolumes(uid).size === 1);
      expect(await world.host.readFile(file)).toBe("written");
      await world.deletePod("p");
    }
    await world.until("not in use", async () => (await inUse(world)).length === 0);
    await world.until("gone", () => second.volumes.podVolumesGone(uid));
    expect(await world.mounts()).toEqual([]);
    await second.stop();
  });
});

describe("registration", () => {
  it("writes node ID, labels and CSINode before it says so, and survives a restart (node-agent.md 2.2)", async () => {
    const { world, agent } = await migratedNode();
    expect(world.registrations).toEqual([{ pluginRegistered: true, error: "" }]);
    const node = await world.node();
    expect(node.metadata.annotations?.[nodeIDAnnotation]).toBe(`{"${driverName}":"i-1"}`);
    expect(node.metadata.labels?.["topology.ebs.csi.aws.com/zone"]).toBe("us-east-1a");
    const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
    expect(csiNode?.spec.drivers).toEqual([
      {
        name: driverName,
        nodeID: "i-1",
        topologyKeys: ["topology.ebs.csi.aws.com/zone"],
        allocatable: { count: 25 },
      },
    ]);
    expect(csiNode?.metadata.ownerReferences).toEqual([
      { apiVersion: "v1", kind: "Node", name: nodeName, uid: node.metadata.uid },
    ]);
    await agent.stop();
    const second = world.start(csiOn);
    await world.until("registered again", () => world.registrations.length === 2);
    await second.stop();
  });

  it("is followed by further questions where the CSIDriver sets a period, until it ends (csi-plugin.md 16)", async () => {
    const { world, agent } = await migratedNode();
    const counts = async () =>
      (await world.kube.get(resources.csiNodes, { name: nodeName }, world))?.spec.drivers?.map(
        ({ allocatable }) => allocatable?.count,
      );
    const questions = () => world.driver.calls.filter((call) => call === "NodeGetInfo").length;
    await world.clock.advance(600_000);
    expect(questions()).toBe(1);
    const spec = { nodeAllocatableUpdatePeriodSeconds: 60 } as CSIDriver["spec"];
    await world.kube.create(resources.csiDrivers, { metadata: { name: driverName }, spec }, world);
    world.driver.maxVolumes = 20n;
    await world.clock.advance(59_000);
    expect([questions(), await counts()]).toEqual([1, [25]]);
    await world.clock.advance(2000);
    expect([questions(), await counts()]).toEqual([2, [20]]);
    failOnce(world.driver, "NodeGetInfo", "UNAVAILABLE");
    world.driver.maxVolumes = 19n;
    await world.clock.advance(60_000);
    expect([questions(), await counts()]).toEqual([3, [20]]);
    await world.clock.advance(60_000);
    expect([questions(), await counts()]).toEqual([4, [19]]);
    await world.removeRegistration();
    await world.clock.advance(600_000);
    expect([questions(), await counts()]).toEqual([4, []]);
    await agent.stop();
  });

  it("that fails in NodeGetInfo leaves nothing and notifies false (node-agent.md 11.2)", async () => {
    const world = await NodeWorld.create();
    failOnce(world.driver, "NodeGetInfo", "INTERNAL");
    await world.serveDriver();
    const agent = world.start(csiOn);
    await world.until("notified", () => world.registrations.length > 0);
    expect(world.registrations[0]?.pluginRegistered).toBe(false);
    expect((await world.node()).metadata.annotations?.[nodeIDAnnotation]).toBeUndefined();
    await world.until("initialised", () => agent.volumes.kubeletError() === undefined);
    const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
    expect(csiNode?.spec.drivers).toEqual([]);
    // The agent does not retry: the registrar has to recreate its socket.
    await world.clock.advance(60_000);
    expect(world.registrations).toHaveLength(1);
    await world.placeRegistration();
    await world.until("registered", () => world.registrations[1]?.pluginRegistered === true);
    await agent.stop();
  });

  it("waits for the Node: a registrar that came first is not refused (node-agent.md 2.2)", async () => {
    const world = await NodeWorld.create();
    await world.kube.delete(resources.nodes, { name: nodeName }, world);
    await world.serveDriver();
    const agent = world.start(csiOn);
    await world.clock.advance(60_000);
    expect(world.registrations).toEqual([]);
    await world.kube.create(resources.nodes, { metadata: { name: nodeName } }, world);
    await world.until("registered", () => world.registrations.length > 0);
    expect(world.registrations).toEqual([{ pluginRegistered: true, error: "" }]);
    await agent.stop();
  });

  it("of a socket made again follows the deregistration of the old one (node-agent.md 11.3)", async () => {
    const { world, agent } = await migratedNode();
    const seen: string[] = [];
    world.driver.before = async (rpc) => {
      if (rpc !== "NodeGetInfo") return;
      const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
      seen.push(`${csiNode?.spec.drivers.length} drivers at NodeGetInfo`);
    };
    await world.placeRegistration();
    await world.until("registered again", () => world.registrations.length === 2);
    expect(seen).toEqual(["0 drivers at NodeGetInfo"]);
    await agent.stop();
  });

  it("with an equal version is refused while the old one is registered (csi-plugin.md 14)", async () => {
    const { world, agent } = await migratedNode();
    const other = `${rootDir}/plugins_registry/other-reg.sock`;
    await world.csi.serveRegistration(other, {
      getInfo: async () => ({
        type: "CSIPlugin",
        name: driverName,
        endpoint: "/elsewhere.sock",
        supportedVersions: ["1.0.0"],
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        world.registrations.push({ pluginRegistered, error });
      },
    });
    world.host.placeSocket(other);
    await world.until("refused", () => world.registrations.length === 2);
    expect(world.registrations[1]?.error).toMatch(/already registered with version 1\.0\.0/);
    await agent.stop();
  });

  it("of a newer version that fails leaves the older one registered (csi-plugin.md 14)", async () => {
    const { world, agent } = await migratedNode();
    const other = `${rootDir}/plugins_registry/other-reg.sock`;
    await world.csi.serveRegistration(other, {
      getInfo: async () => ({
        type: "CSIPlugin",
        name: driverName,
        endpoint: "/nothing-listens.sock",
        supportedVersions: ["1.1.0"],
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        world.registrations.push({ pluginRegistered, error });
      },
    });
    world.host.placeSocket(other);
    await world.until("failed", () => world.registrations.length === 2);
    expect(world.registrations[1]?.pluginRegistered).toBe(false);
    await world.host.removeFile(other);
    await world.clock.advance(60_000);
    const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
    expect(csiNode?.spec.drivers.map(({ name }) => name)).toEqual([driverName]);
    await agent.stop();
  });

  it("ends with its socket (node-agent.md 1.3, 2.3)", async () => {
    const { world, agent } = await migratedNode();
    await world.host.removeFile(registrationSocket);
    await world.until("deregistered", async () => {
      const csiNode = await world.kube.get(resources.csiNodes, { name: nodeName }, world);
      return csiNode?.spec.drivers.length === 0;
    });
    await world.until("annotation gone", async () => {
      return (await world.node()).metadata.annotations?.[nodeIDAnnotation] === undefined;
    });
    await agent.stop();
  });

  it("refuses a topology that collides with a label (node-agent.md 2.2)", async () => {
    const world = await NodeWorld.create();
    const patch = {
      type: "merge" as const,
      body: { metadata: { labels: { "topology.ebs.csi.aws.com/zone": "us-east-1b" } } },
    };
    await world.kube.patch(resources.nodes, { name: nodeName }, patch, world);
    await world.serveDriver(testDriver(world.host));
    const agent = world.start(csiOn);
    await world.until("refused", () => world.registrations.length === 1);
    expect(world.registrations[0]?.error).toMatch(/topology value collision/);
    expect((await world.node()).metadata.annotations?.[nodeIDAnnotation]).toBeUndefined();
    await agent.stop();
  });
});

describe("the node", () => {
  it("is not Ready before the annotation is in place, also when the API server is down at start (node-agent.md 2.4, 11.1)", async () => {
    const world = await NodeWorld.create();
    world.apiDown = new Error("the API server is down");
    const agent = world.start(csiOn);
    await world.clock.advance(30_000);
    expect(agent.volumes.kubeletError()).toMatch(/^Failed to initialize CSINode: the API server is down/);
    world.apiDown = undefined;
    const readyWithout: boolean[] = [];
    await world.until("ready", async () => {
      const ready = (await world.condition("Ready"))?.status === "True";
      if (ready) readyWithout.push((await world.migratedPlugins()) !== "kubernetes.io/aws-ebs");
      return ready;
    });
    expect(readyWithout).toEqual([false]);
    await agent.stop();
  });

  it("goes quiet when there is nothing to do (node-agent.md 3)", async () => {
    const { world, agent } = await migratedNode();
    await world.volume("vol-1");
    const pod = await world.pod("p", ["vol-1"]);
    await world.attachCsi("vol-1");
    await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
    await world.clock.advance(10_000);
    world.requests.length = 0;
    const before = (await world.node()).metadata.resourceVersion;
    await world.clock.advance(600_000);
    // The informers of the own Node and of the CSIDrivers list and watch by themselves; the claim may be read, but not watched.
    const byItself = /^(watch|list) (nodes|csidrivers)$|^get persistentvolumeclaims$/;
    expect(world.requests.filter((request) => !byItself.test(request))).toEqual([]);
    expect(world.requests.filter((request) => request.startsWith("get")).length).toBeLessThanOrEqual(10);
    expect((await world.node()).metadata.resourceVersion).toBe(before);
    expect(world.driver.calls).toEqual(["NodeGetInfo", "NodeStageVolume vol-1", "NodePublishVolume vol-1"]);
    await agent.stop();
  });
});
