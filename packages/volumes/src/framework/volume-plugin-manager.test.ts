import { noMeter, recordingLogger, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { DynamicPluginProber, PluginEvent } from "./dynamic-plugin-prober.ts";
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

/** A prober that hands over what a test puts into `events`. */
function aProber(fields: Partial<DynamicPluginProber> = {}) {
  const events: PluginEvent[] = [];
  const prober: DynamicPluginProber = {
    init: async () => {},
    probe: () => events.splice(0),
    stop: async () => {},
    ...fields,
  };
  return { events, prober };
}

describe("probed plugins (docs/behaviour/volume-plugins.md 4.2)", () => {
  const addOrUpdate = (plugin: VolumePlugin): PluginEvent => ({ op: "addOrUpdate", plugin });

  it("are found beside the static ones, replaced and removed", async () => {
    const { events, prober } = aProber();
    const manager = await createVolumePluginManager(host, [aPlugin("k.io/a")], prober);
    const first = aPlugin("v.io/d", { canSupport: () => false });
    const second = aPlugin("v.io/d", { canSupport: () => false });
    events.push(addOrUpdate(first), addOrUpdate(aPlugin("plain", { canSupport: () => false })));
    expect(manager.plugins.map(({ pluginName }) => pluginName)).toEqual(["k.io/a", "v.io/d", "plain"]);
    expect(manager.findPluginBySpec(spec).pluginName).toBe("k.io/a");
    expect(manager.findPluginByName("v.io/d")).toBe(first);
    events.push(addOrUpdate(second));
    expect(manager.findPluginByName("v.io/d")).toBe(second);
    events.push({ op: "remove", pluginName: "v.io/d" });
    expect(() => manager.findPluginByName("v.io/d")).toThrow("no volume plugin matched name: v.io/d");
  });

  it("that answer to what a static one answers to are refused, by spec and by name", async () => {
    const { events, prober } = aProber();
    const manager = await createVolumePluginManager(host, [aPlugin("k.io/a")], prober);
    events.push(addOrUpdate(aPlugin("k.io/a")));
    expect(() => manager.findPluginBySpec(spec)).toThrow("multiple volume plugins matched: k.io/a,k.io/a");
    expect(() => manager.findPluginByName("k.io/a")).toThrow(
      "multiple volume plugins matched: k.io/a,k.io/a",
    );
  });

  it("with an invalid name are left out, and the others of the same probe are not", async () => {
    const { events, prober } = aProber();
    const manager = await createVolumePluginManager(host, [], prober);
    events.push(addOrUpdate(aPlugin("a.io/b/c")), addOrUpdate(aPlugin("v.io/d")));
    expect(manager.plugins.map(({ pluginName }) => pluginName)).toEqual(["v.io/d"]);
  });

  it("stay as they are when a probe fails", async () => {
    const logger = recordingLogger();
    let fails = false;
    const { events, prober } = aProber({
      probe: () => {
        if (fails) throw new Error("EIO");
        return events.splice(0);
      },
    });
    const manager = await createVolumePluginManager({ ...host, logger }, [], prober);
    events.push(addOrUpdate(aPlugin("v.io/d")));
    expect(manager.findPluginByName("v.io/d").pluginName).toBe("v.io/d");
    fails = true;
    expect(manager.findPluginByName("v.io/d").pluginName).toBe("v.io/d");
    expect(logger.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining("the probe for plugins failed"),
    ]);
  });

  it("are done without where the prober cannot begin", async () => {
    const { prober } = aProber({
      init: () => Promise.reject(new Error("no directory")),
      probe: () => [addOrUpdate(aPlugin("v.io/d"))],
    });
    const manager = await createVolumePluginManager(host, [aPlugin("k.io/a")], prober);
    expect(manager.plugins.map(({ pluginName }) => pluginName)).toEqual(["k.io/a"]);
  });

  it("that are on the node alone leave the expansion of a Flexvolume to it", async () => {
    const manager = await createVolumePluginManager(host, []);
    const flex = specOfVolume({ name: "v", flexVolume: { driver: "v.io/d" } });
    const expander = manager.findExpandablePluginBySpec(flex);
    expect(expander?.pluginName).toBe("v.io/d");
    expect(expander?.requiresFSResize()).toBe(true);
    expect(await expander?.expandVolumeDevice(flex, 7n, 3n, new AbortController().signal)).toBe(7n);
    expect(() => manager.findExpandablePluginBySpec(spec)).toThrow("no volume plugin matched");
  });
});
