/** The figures of every in-tree plugin's volumes. Source: docs/behaviour/node-agent.md 13. */
import { noMeter, SeededRandom, silentLogger } from "@longshore/runtime";
import { expect, it } from "vitest";
import { isAttachable, isInTreeAttachable } from "../../framework/volume-plugin.ts";
import { inTreePlugins } from "../../plugins/in-tree-plugins.ts";
import { InTreePluginWorld, podOf } from "../../testing/in-tree-plugin-world.ts";
import { VolumeStatsCollector } from "./volume-stats.ts";

const { signal } = new AbortController();
const names = inTreePlugins().map(({ pluginName }) => pluginName);

it.each(names)("a volume of %s is measured where a pod has it (node-agent.md 13)", async (pluginName) => {
  const world = await InTreePluginWorld.of(pluginName);
  const { clock, host, node, controller } = world;
  const spec = await world.provisioned();
  const pod = podOf("a");
  let deviceMountPath = "";
  if (isAttachable(node)) {
    const reported = isInTreeAttachable(controller)
      ? await controller.newAttacher().attach(spec, "node-1", signal)
      : "";
    const attacher = node.newAttacher();
    const device = await attacher.waitForAttach(spec, reported, signal, pod);
    deviceMountPath = attacher.getDeviceMountPath(spec);
    await attacher.mountDevice(spec, device, deviceMountPath, signal);
  }
  const mounter = await node.newMounter(spec, pod);
  await mounter.setUp({}, signal);
  const path = mounter.getPath();
  await host.writeFileAtomic(`${path}/data`, "x".repeat(1000));
  const user = { pod, spec, outerNames: new Set(["data"]), path };
  const collector = new VolumeStatsCollector({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
    host,
    events: { event() {} },
    volumeUse: () => ({ plugin: node, deviceMountPath, users: [user] }),
  });
  collector.wake("v");
  await clock.advance(1000);
  const figures = collector.summary().flatMap(({ volume }) => volume);
  expect(figures).toEqual([expect.objectContaining({ name: "data", usedBytes: 1000 })]);
  await collector.stop();
});
