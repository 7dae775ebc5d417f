/** What every plugin whose volumes need no provider does alike. Source: docs/behaviour/pod-volumes.md 1. */
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import type { Pod, Stored, Volume } from "@longshore/kube";
import {
  type Host,
  HostError,
  invariant,
  noMeter,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  unprivilegedHost,
  VirtualClock,
} from "@longshore/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import type { PodSources } from "../framework/pod-sources.ts";
import { uniqueVolumeName } from "../framework/unique-volume-name.ts";
import type { VolumeHost } from "../framework/volume-host.ts";
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { specOfPersistentVolume, specOfVolume, type VolumeSpec } from "../framework/volume-spec.ts";
import { awsEbsPlugin } from "./aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "./csi/csi-plugin.ts";
import { podVolumePlugins } from "./pod-volume-plugins.ts";

const signal = new AbortController().signal;
const rootDir = "/var/lib/kubelet";
const pod = {
  metadata: { name: "p", namespace: "default", uid: "uid-1", resourceVersion: "1" },
} as Stored<Pod>;

const inline = (source: Omit<Volume, "name">) => specOfVolume({ name: "v", ...source });
const fieldRef = { fieldPath: "metadata.name" };
const item = { items: [{ key: "a", path: "a" }] };

const volumes: readonly (readonly [pluginName: string, spec: VolumeSpec])[] = [
  ["kubernetes.io/empty-dir", inline({ emptyDir: {} })],
  ["kubernetes.io/empty-dir", inline({ emptyDir: { medium: "Memory" } })],
  ["kubernetes.io/configmap", inline({ configMap: { name: "m", ...item } })],
  ["kubernetes.io/secret", inline({ secret: { secretName: "s", ...item } })],
  ["kubernetes.io/downward-api", inline({ downwardAPI: { items: [{ path: "a", fieldRef }] } })],
  ["kubernetes.io/projected", inline({ projected: { sources: [{ serviceAccountToken: { path: "a" } }] } })],
  ["kubernetes.io/host-path", inline({ hostPath: { path: "/srv", type: "Directory" } })],
  [
    "kubernetes.io/host-path",
    specOfPersistentVolume({ metadata: { name: "v" }, spec: { hostPath: { path: "/srv" } } }, false),
  ],
  [
    "kubernetes.io/local-volume",
    specOfPersistentVolume({ metadata: { name: "v" }, spec: { local: { path: "/srv" } } }, true),
  ],
];

/** What the API server holds. */
const sources: PodSources = {
  configMap: async () => ({ metadata: pod.metadata, data: { a: "1" } }),
  secret: async () => ({ metadata: pod.metadata, data: { a: "MQ==" } }),
  serviceAccountToken: async () => ({ token: "1", expirationTimestamp: "2026-01-01T00:00:00Z" }),
};

/** The volume where the machine has other paths. */
const below = (base: string, spec: VolumeSpec): VolumeSpec =>
  JSON.parse(JSON.stringify(spec).replaceAll('"/srv"', JSON.stringify(`${base}/srv`)));

/** A node whose next changes fail once `left` of them have been made. */
async function nodeWith() {
  const node = { left: Number.POSITIVE_INFINITY };
  const host = new SimulatedHost({
    beforeChange: (operation, path) => {
      if (--node.left < 0) throw new HostError(operation, path, "EIO");
    },
  });
  return { node, ...(await nodeOn(host, "")) };
}

/** A node on a host, all of whose files are below `base`. */
async function nodeOn(host: Host, base: string) {
  const podDir = `${base}${rootDir}/pods/uid-1`;
  await host.makeDirectory(`${base}/srv`);
  await host.writeFileAtomic(`${base}/srv/precious`, "x");
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const kubelet = { nodeName: "n", rootDir: `${base}${rootDir}`, host, sources, setKubeletError: () => {} };
  const volumeHost = { ...env, kube: {}, kubelet, csiDriver: async () => undefined } as unknown as VolumeHost;
  /** The plugin as a new agent has it. */
  const plugin = async (pluginName: string): Promise<VolumePlugin> => {
    const found = podVolumePlugins().find((candidate) => candidate.pluginName === pluginName);
    invariant(found !== undefined, pluginName);
    await found.init(volumeHost);
    return found;
  };
  const setUp = async (pluginName: string, spec: VolumeSpec) =>
    (await (await plugin(pluginName)).newMounter(below(base, spec), pod)).setUp({ fsGroup: 1000 }, signal);
  const tearDown = async (pluginName: string) =>
    (await (await plugin(pluginName)).newUnmounter("v", "uid-1")).tearDown(signal);
  const left = async () => {
    const mounts = (await host.listMounts(podDir)).map(({ target }) => target);
    const plugins = (await host.readDirectory(`${podDir}/volumes`)) ?? [];
    const names = plugins.map(async (name) => (await host.readDirectory(`${podDir}/volumes/${name}`)) ?? []);
    return [...mounts, ...(await Promise.all(names)).flat()];
  };
  return { host, base, podDir, plugin, setUp, tearDown, left };
}

/** A node on the machine's own files, in a directory that goes with the test. */
async function realNode() {
  const base = await fs.realpath(await fs.mkdtemp(`${tmpdir()}/longshore-plugins-`));
  onTestFinished(() => fs.rm(base, { recursive: true, force: true }));
  return nodeOn(unprivilegedHost(), base);
}

describe.each(volumes)("%s, %j", (pluginName, spec) => {
  it("is the plugin of its volumes alone", () => {
    const all = [awsEbsPlugin(), csiPlugin(), ...podVolumePlugins()];
    expect(all.filter((plugin) => plugin.canSupport(spec)).map((plugin) => plugin.pluginName)).toEqual([
      pluginName,
    ]);
  });

  it.each([
    ["simulated", nodeWith],
    ["real", realNode],
  ])("sets up a second time without a second mount, on %s files", async (_form, make) => {
    const { host, podDir, setUp, left } = await make();
    await setUp(pluginName, spec);
    const once = await left();
    await setUp(pluginName, spec);
    expect(await left()).toEqual(once);
    expect((await host.listMounts(podDir)).length).toBeLessThanOrEqual(1);
  });

  it.each([
    ["simulated", nodeWith],
    ["real", realNode],
  ])(
    "tears down knowing the name alone, twice, or when nothing was set up, on %s files (1.3)",
    async (_form, make) => {
      const { host, base, setUp, tearDown, left } = await make();
      await tearDown(pluginName);
      await setUp(pluginName, spec);
      expect(await left()).not.toEqual([]);
      await tearDown(pluginName);
      await tearDown(pluginName);
      expect(await left()).toEqual([]);
      expect(await host.readFile(`${base}/srv/precious`)).toBe("x");
    },
  );

  it("is known by the same unique name from its directory (1.3)", async () => {
    const { plugin, podDir } = await nodeWith();
    const found = await plugin(pluginName);
    const again = await found.constructVolumeSpec("v", `${podDir}/volumes/${pluginName}/v`);
    expect(uniqueVolumeName(found, again, "uid-1")).toBe(uniqueVolumeName(found, spec, "uid-1"));
  });

  it.each(["setUp", "tearDown"] as const)("a crash at any point of %s is made up for", async (dying) => {
    for (let point = 0, crashed = true; crashed; point++) {
      for (const next of ["setUp", "tearDown"] as const) {
        const { node, host, setUp, tearDown, left } = await nodeWith();
        const run = { setUp: () => setUp(pluginName, spec), tearDown: () => tearDown(pluginName) };
        if (dying === "tearDown") await run.setUp();
        node.left = point;
        crashed = await run[dying]().then(
          () => false,
          () => true,
        );
        node.left = Number.POSITIVE_INFINITY;
        await run[next]();
        if (next === "setUp") expect(await left()).toContain("v");
        await run.tearDown();
        expect(await left()).toEqual([]);
        expect(await host.readFile("/srv/precious")).toBe("x");
      }
      expect(point).toBeLessThan(50);
    }
  });
});
