/** What an earlier agent has left of in-tree volumes other than EBS is found again, and taken away when no pod wants it. */
import { expect, it } from "vitest";
import { isAttachable, isBlockVolumePlugin, isInTreeAttachable } from "../framework/volume-plugin.ts";
import { inTreeDisks } from "../plugins/in-tree-plugins.ts";
import { InTreePluginWorld, podOf } from "../testing/in-tree-plugin-world.ts";
import { NodeWorld, nodeName, rootDir } from "./testing/node-world.ts";

const disks = inTreeDisks.filter(({ provider }) => provider !== "aws-ebs");

it.each(disks)("$pluginName: a global mount without a pod is unmounted", async ({ pluginName, attached }) => {
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
});

const mappedByNodes = inTreeDisks.filter(({ pluginName }) => pluginName === "kubernetes.io/rbd");

it.each(mappedByNodes)(
  "$pluginName: a device that no pod has a link to is detached",
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
