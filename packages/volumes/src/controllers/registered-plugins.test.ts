/** In which phase of its migration the controllers still begin an in-tree plugin at all. */
import { featureGates } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { afterEach, expect, it } from "vitest";
import { unregisterGateOf, volumeGates } from "../csimigration/volume-gates.ts";
import { csiPlugin } from "../plugins/csi/csi-plugin.ts";
import { inTreePlugins } from "../plugins/in-tree-plugins.ts";
import { ControlPlane } from "../testing/control-plane.ts";
import { startAttachDetachController } from "./attach-detach/attach-detach-controller.ts";
import { startExpandController } from "./expand/expand-controller.ts";
import { startPersistentVolumeController } from "./persistent-volume/persistent-volume-controller.ts";

const planes: ControlPlane[] = [];
afterEach(async () => {
  for (const plane of planes.splice(0)) await plane.stop();
});

/** Which controllers begin the plugin under these gates. */
async function begun(pluginName: string, values: Readonly<Record<string, boolean>>) {
  const plane = new ControlPlane();
  planes.push(plane);
  const begins: string[] = [];
  const envOf = (controller: string) => ({
    ...plane.env,
    kube: plane.kube,
    plugins: [
      ...inTreePlugins().map((plugin) => ({
        ...plugin,
        init: async (host: Parameters<typeof plugin.init>[0]) => {
          if (plugin.pluginName === pluginName) begins.push(controller);
          await plugin.init(host);
        },
      })),
      csiPlugin(),
    ],
  });
  const options = { gates: featureGates(volumeGates, values) };
  plane.running(startAttachDetachController(envOf("attach-detach"), options));
  plane.running(startPersistentVolumeController(envOf("persistent-volume"), options));
  plane.running(startExpandController(envOf("expand"), options));
  await plane.pass(1000);
  return begins.sort();
}

const every = ["attach-detach", "expand", "persistent-volume"];

it.each(migrationGates)(
  "$inTreeName is begun until its migration is complete or it is not registered, and never then (volume-plugins.md 7.3)",
  async (plugin) => {
    const { inTreeName, gate, completeGate } = plugin;
    expect(await begun(inTreeName, {})).toEqual(every);
    expect(await begun(inTreeName, { [gate]: true })).toEqual(every);
    expect(await begun(inTreeName, { [gate]: true, [completeGate]: true })).toEqual([]);
    expect(await begun(inTreeName, { [unregisterGateOf(plugin)]: true })).toEqual([]);
  },
);
