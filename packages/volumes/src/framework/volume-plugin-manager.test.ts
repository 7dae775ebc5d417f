import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { VolumeHost } from "./volume-host.ts";
import type { VolumePlugin } from "./volume-plugin.ts";
import { createVolumePluginManager } from "./volume-plugin-manager.ts";
import { specOfVolume } from "./volume-spec.ts";

const host = {
  clock: new VirtualClock(),
  random: new SeededRandom(1),
  logger: silentLogger,
  meter: noMeter,
} as unknown as VolumeHost;
const spec = specOfVolume({ name: "v", emptyDir: {} });

function aPlugin(pluginName: string, fields: object = {}): VolumePlugin {
  const plugin = { pluginName, init: async () => {}, canSupport: () => true, ...fields };
  return plugin as unknown as VolumePlugin;
}

describe("loading", () => {
  it("leaves out what is ill-named, double or fails, and loads the rest", async () => {
    const manager = await createVolumePluginManager(host, [
      aPlugin("no-slash"),
      aPlugin("a.io/b/c"),
      aPlugin("k.io/a"),
      aPlugin("k.io/a"),
      aPlugin("k.io/b", { init: () => Promise.reject(new Error("no disk")) }),
      aPlugin("k.io/c"),
    ]);
    expect(manager.plugins.map((plugin) => plugin.pluginName)).toEqual(["k.io/a", "k.io/c"]);
    expect(manager.loadErrors.map((error) => error.message)).toEqual([
      expect.stringContaining('invalid name: "no-slash"'),
      expect.stringContaining('invalid name: "a.io/b/c"'),
      'volume plugin "k.io/a" was registered more than once',
      'Failed to load volume plugin "k.io/b"',
    ]);
  });
});

describe("finding", () => {
  it("wants exactly one plugin for a spec", async () => {
    const none = await createVolumePluginManager(host, [aPlugin("k.io/a", { canSupport: () => false })]);
    expect(() => none.findPluginBySpec(spec)).toThrow("no volume plugin matched");
    expect(() => none.findPluginBySpec(undefined)).toThrow("volume spec is nil");
    const two = await createVolumePluginManager(host, [aPlugin("k.io/a"), aPlugin("k.io/b")]);
    expect(() => two.findPluginBySpec(spec)).toThrow("multiple volume plugins matched: k.io/a,k.io/b");
    expect(() => two.findPluginByName("k.io/c")).toThrow("no volume plugin matched name: k.io/c");
  });

  it("asks canAttach when it looks by spec, not when it looks by name", async () => {
    const newAttacher = () => {};
    const manager = await createVolumePluginManager(host, [
      aPlugin("k.io/a", { newAttacher, canAttach: async () => false }),
    ]);
    expect(await manager.findAttachablePluginBySpec(spec)).toBeUndefined();
    expect(manager.findAttachablePluginByName("k.io/a")?.pluginName).toBe("k.io/a");
  });

  it("throws for a missing provisioner or deleter and gives nothing for a missing expander", async () => {
    const manager = await createVolumePluginManager(host, [aPlugin("k.io/a")]);
    expect(() => manager.findProvisionablePluginByName("k.io/a")).toThrow(
      "no provisionable volume plugin matched",
    );
    expect(() => manager.findDeletablePluginBySpec(spec)).toThrow("no deletable volume plugin matched");
    expect(manager.findExpandablePluginBySpec(spec)).toBeUndefined();
  });
});
