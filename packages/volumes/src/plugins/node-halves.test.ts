/** Both plugins' node halves on every form of Host: the same calls, the same outcome, nothing left. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { inProcessCsi } from "@longshore/csi";
import { type PersistentVolume, type Pod, resources } from "@longshore/kube";
import {
  type Host,
  kernelHost,
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  SimulatedHost,
  silentLogger,
  systemClock,
  unprivilegedHost,
} from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import type { VolumeHost } from "../framework/volume-host.ts";
import type { AttachableVolumePlugin } from "../framework/volume-plugin.ts";
import { specOfPersistentVolume } from "../framework/volume-spec.ts";
import { testDriver } from "../node/testing/test-driver.ts";
import { awsEbsPlugin } from "./aws-ebs/aws-ebs-plugin.ts";
import { csiPlugin } from "./csi/csi-plugin.ts";

const driverName = "ebs.csi.aws.com";
const diskId = "vol-0123";
const signal = new AbortController().signal;
const isRoot = process.getuid?.() === 0 && process.platform === "linux";

interface Place {
  readonly host: Host;
  readonly dir: string;
  close(): Promise<void>;
}

async function temporary(host: Host): Promise<Place> {
  const dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-halves-`));
  return { host, dir, close: () => rm(dir, { recursive: true, force: true }) };
}

const forms: readonly { readonly form: string; place(): Promise<Place> }[] = [
  {
    form: "simulated",
    async place() {
      const host = new SimulatedHost();
      await host.makeDirectory("/work");
      return { host, dir: "/work", close: async () => {} };
    },
  },
  { form: "unprivileged", place: () => temporary(unprivilegedHost()) },
  ...(isRoot ? [{ form: "kernel", place: () => temporary(kernelHost()) }] : []),
];

/** An initialised plugin and a PV of it. */
async function pluginOn(kind: string, env: RuntimeEnv, host: Host, rootDir: string, device: () => string) {
  const api = createApiServer(env, { store: memoryStore() });
  const kube = api.client();
  const csi = inProcessCsi(env);
  const driver = testDriver(host);
  const plugin: AttachableVolumePlugin = kind === "csi" ? csiPlugin({ connector: csi }) : awsEbsPlugin();
  if (kind === "csi") {
    await csi.serve("/csi.sock", driver.services);
    csiDriversOf(plugin).set(driverName, { endpoint: "/csi.sock", highestVersion: "1.0.0" });
    driver.before = () => {
      driver.device = device();
    };
    await kube.create(
      resources.csiDrivers,
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "CSIDriver",
        metadata: { name: driverName },
        spec: { attachRequired: false },
      },
      { signal },
    );
  }
  const volumeHost: VolumeHost = {
    ...env,
    kube,
    csiDriver: (name) => kube.get(resources.csiDrivers, { name }, { signal }),
    kubelet: { nodeName: "node-1", rootDir, host, setKubeletError: () => {} },
  };
  await plugin.init(volumeHost);
  const source =
    kind === "csi"
      ? { csi: { driver: driverName, volumeHandle: diskId, fsType: "ext4" } }
      : { awsElasticBlockStore: { volumeID: `aws://us-east-1a/${diskId}`, fsType: "ext4" } };
  const pv: PersistentVolume = {
    metadata: { name: "pv-1" },
    spec: { accessModes: ["ReadWriteOnce"], ...source },
  };
  return { plugin, spec: specOfPersistentVolume(pv, false) };
}

function csiDriversOf(plugin: object) {
  return (plugin as ReturnType<typeof csiPlugin>).csiDrivers;
}

describe.each(forms)("on the $form host", ({ place }) => {
  it.each(["in-tree", "csi"])(
    "the %s plugin mounts, finds again, unmounts and keeps the data",
    async (kind) => {
      const { host, dir, close } = await place();
      const env = { clock: systemClock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
      const backing = `${dir}/${diskId}`;
      const rootDir = `${dir}/root`;
      await host.makeDirectory(rootDir);
      await host.truncateFile(backing, 8 << 20);
      let device = await host.attachLoop(backing);
      const { plugin, spec } = await pluginOn(kind, env, host, rootDir, () => device);
      try {
        for (const [round, uid] of ["uid-a", "uid-b"].entries()) {
          const pod: Pod = { metadata: { name: "p", namespace: "default", uid } };
          const attacher = plugin.newAttacher();
          const path = attacher.getDeviceMountPath(spec);
          // Twice: what is there already is left alone.
          for (let repeat = 0; repeat < 2; repeat++) {
            if (kind === "in-tree") expect(await attacher.waitForAttach(spec, device, signal)).toBe(device);
            await attacher.mountDevice(spec, device, path, signal);
            await (await plugin.newMounter(spec, pod)).setUp({ fsGroup: process.getgid?.() ?? 0 }, signal);
          }
          const mounted = (await plugin.newMounter(spec, pod)).getPath();
          await host.appendFileDurable(`${mounted}/data`, `${round}`);
          expect(await host.readFile(`${path}/data`)).toBe("01".slice(0, round + 1));

          const escaped = plugin.pluginName.replace("/", "~");
          const directory = `${rootDir}/pods/${uid}/volumes/${escaped}/pv-1`;
          const found = await plugin.constructVolumeSpec("pv-1", directory);
          expect(plugin.getVolumeName(found)).toBe(plugin.getVolumeName(spec));

          for (let repeat = 0; repeat < 2; repeat++) {
            await (await plugin.newUnmounter("pv-1", uid)).tearDown(signal);
            expect(await host.stat(directory)).toBeUndefined();
          }
          for (let repeat = 0; repeat < 2; repeat++)
            await plugin.newDeviceUnmounter().unmountDevice(path, signal);
          expect(await host.stat(path)).toBeUndefined();
          expect(await host.listMounts(rootDir)).toEqual([]);
          await host.detachLoop(backing);
          expect(await host.findLoop(backing)).toBeUndefined();
          device = await host.attachLoop(backing);
        }
      } finally {
        for (const { target } of [...(await host.listMounts(rootDir))].reverse()) await host.unmount(target);
        await host.detachLoop(backing);
        await close();
      }
    },
  );

  it("a device with a file system is never formatted", async () => {
    const { host, dir, close } = await place();
    const env = { clock: systemClock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    const backing = `${dir}/${diskId}`;
    await host.truncateFile(backing, 8 << 20);
    const device = await host.attachLoop(backing);
    try {
      await host.format(device, "ext4");
      const { plugin, spec } = await pluginOn("in-tree", env, host, `${dir}/root`, () => device);
      const attacher = plugin.newAttacher();
      const path = attacher.getDeviceMountPath(spec);
      await attacher.mountDevice(spec, device, path, signal);
      await host.appendFileDurable(`${path}/data`, "kept");
      await plugin.newDeviceUnmounter().unmountDevice(path, signal);
      await attacher.mountDevice(spec, device, path, signal);
      expect(await host.readFile(`${path}/data`)).toBe("kept");
      await plugin.newDeviceUnmounter().unmountDevice(path, signal);
    } finally {
      await host.detachLoop(backing);
      await close();
    }
  });
});
