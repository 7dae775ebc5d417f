/** What an earlier agent has left of in-tree volumes other than EBS is found again, and taken away when no pod wants it. */
import { resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { CloudError } from "../framework/ports.ts";
import { isAttachable, isBlockVolumePlugin, isInTreeAttachable } from "../framework/volume-plugin.ts";
import { inTreeDisks } from "../plugins/in-tree-plugins.ts";
import { fakeCredentials } from "../testing/fake-provider-cloud.ts";
import { InTreePluginWorld, podOf } from "../testing/in-tree-plugin-world.ts";
import { inUse } from "./testing/migrated-node.ts";
import { NodeWorld, nodeName, rootDir } from "./testing/node-world.ts";

const disks = inTreeDisks.filter(({ provider }) => provider !== "aws-ebs");

it.each(disks)(
  "$pluginName: a global mount without a pod is unmounted (node-agent.md 9; volume-plugins.md 10)",
  async ({ pluginName, attached }) => {
    const world = await NodeWorld.create();
    const { host, signal } = world;
    // The earlier agent, as far as it got.
    const before = await InTreePluginWorld.at(pluginName, { host, dir: "", rootDir });
    const { controller, node, cloud } = before;
    if (!isInTreeAttachable(controller) || !isAttachable(node))
      throw new Error(`${pluginName} attaches nothing`);
    const spec = await before.provisioned();
    const reported = await controller.newAttacher().attach(spec, nodeName, signal);
    const attacher = node.newAttacher();
    const path = attacher.getDeviceMountPath(spec);
    const device = await attacher.waitForAttach(spec, reported, signal, podOf("a"));
    // A node that attaches leaves something without a mount, too.
    if (attached.by === "controller") await attacher.mountDevice(spec, device, path, signal);
    expect(await host.stat(path)).toBeDefined();

    world.furtherPlugins = () => [before.newPlugin()];
    const agent = world.start();
    agent.volumes.setPods([]);
    await world.until("the directory is gone", async () => (await host.stat(path)) === undefined);
    expect(await host.listMounts(`${rootDir}/plugins`)).toEqual([]);
    const held = [...cloud.disks.values()].flatMap(({ attachments }) => [...attachments.keys()]);
    expect(held).toEqual(attached.by === "node" ? [] : [`i-${nodeName}`]);
    await agent.stop();
  },
);

const mappedByNodes = inTreeDisks.filter(({ pluginName }) => pluginName === "kubernetes.io/rbd");

it.each(mappedByNodes)(
  "$pluginName: a device that no pod has a link to is detached (node-agent.md 9; volume-plugins.md 10)",
  async ({ pluginName }) => {
    const world = await NodeWorld.create();
    const { host, signal } = world;
    const before = await InTreePluginWorld.at(pluginName, { host, dir: "", rootDir });
    const { node, cloud } = before;
    if (!isBlockVolumePlugin(node) || !isAttachable(node)) throw new Error(`${pluginName} maps nothing`);
    const spec = await before.provisioned({ claim: { volumeMode: "Block" } });
    const path = (await node.newBlockVolumeMapper(spec, podOf("a"))).getGlobalMapPath(spec);
    await node.newAttacher().waitForAttach(spec, "", signal, podOf("a"));
    expect(await host.stat(path)).toBeDefined();

    world.furtherPlugins = () => [before.newPlugin()];
    const agent = world.start();
    agent.volumes.setPods([]);
    await world.until("the directory is gone", async () => (await host.stat(path)) === undefined);
    expect([...cloud.disks.values()].flatMap(({ attachments }) => [...attachments])).toEqual([]);
    await agent.stop();
  },
);

const afterAttach = (["Filesystem", "Block"] as const).flatMap((volumeMode) =>
  (["is lost", "is a refusal"] as const).map((answer) => ({ volumeMode, answer })),
);

it.each(afterAttach)(
  "kubernetes.io/rbd: an image of mode $volumeMode that the answer of the attach $answer for is detached when the pod goes (volume-plugins.md 10)",
  async ({ volumeMode, answer }) => {
    const world = await NodeWorld.create();
    const { host } = world;
    const pluginName = "kubernetes.io/rbd";
    const inTree = await InTreePluginWorld.at(pluginName, { host, dir: "", rootDir });
    const { persistentVolume } = await inTree.provisioned();
    const { rbd } = persistentVolume?.spec ?? {};
    if (rbd == null) throw new Error("no image was made");
    const secretRef = { name: "ceph", namespace: "default" };
    await world.volume("vol-1", { rbd: { ...rbd, secretRef }, volumeMode });
    const data = { key: Buffer.from(fakeCredentials.key).toString("base64") };
    await world.kube.create(
      resources.secrets,
      { metadata: { name: "ceph", namespace: "default" }, type: pluginName, data },
      world,
    );
    const attach = inTree.cloud.attachDisk.bind(inTree.cloud);
    inTree.cloud.attachDisk = async (...call) => {
      if (answer === "is a refusal") throw new CloudError("InUse", "another node has it");
      await attach(...call);
      throw new Error("the answer is lost");
    };
    const held = () => [...inTree.cloud.disks.values()].flatMap(({ attachments }) => [...attachments.keys()]);
    world.furtherPlugins = () => [inTree.newPlugin()];
    const agent = world.start();
    await world.reportAttached(`${pluginName}/${rbd.pool}:${rbd.image}`);
    const pod =
      volumeMode === "Block" ? await world.blockPod("p", ["vol-1"]) : await world.pod("p", ["vol-1"]);
    await world.clock.advance(10_000);
    expect(held()).toHaveLength(answer === "is lost" ? 1 : 0);
    await world.deletePod("p");
    await world.until("nothing is in use", async () => (await inUse(world)).length === 0);
    expect(held()).toEqual([]);
    expect(await agent.volumes.podVolumesGone(pod.metadata.uid)).toBe(true);
    await agent.stop();
  },
);
