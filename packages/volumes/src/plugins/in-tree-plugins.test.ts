/** What holds for every in-tree plugin of the list: one volume through its whole life on a simulated host. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { type Host, SimulatedHost, unprivilegedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { DanglingAttachError, DeletedVolumeInUseError } from "../framework/controller-errors.ts";
import {
  type Attacher,
  hasAttachLimits,
  isAttachable,
  isBlockVolumePlugin,
  isDeletable,
  isDeviceMountable,
  isExpandable,
  isInTreeAttachable,
  isNodeExpandable,
  listsAttachments,
  listsGlobalMounts,
} from "../framework/volume-plugin.ts";
import { isBlockSpec, type VolumeSpec } from "../framework/volume-spec.ts";
import { InTreePluginWorld, podOf } from "../testing/in-tree-plugin-world.ts";
import { inTreePlugins } from "./in-tree-plugins.ts";

const { signal } = new AbortController();
const names = inTreePlugins().map(({ pluginName }) => pluginName);
const gib = 1024 ** 3;

/** Attaches as the controller does, and waits as the node does. */
async function attached(world: InTreePluginWorld<Host>, spec: VolumeSpec) {
  const { controller, node } = world;
  if (!isInTreeAttachable(controller) || !isAttachable(node)) return { device: "", attacher: undefined };
  const reported = await controller.newAttacher().attach(spec, "node-1", signal);
  expect(await controller.newAttacher().attach(spec, "node-1", signal)).toBe(reported);
  const attacher: Attacher = node.newAttacher();
  const wait = () => attacher.waitForAttach(spec, reported, signal, podOf("a"));
  const device = await wait();
  expect(await wait()).toBe(device);
  expect(await world.host.stat(device)).toBeDefined();
  return { device, attacher };
}

describe.each(names)("%s", (pluginName) => {
  it("is named, and the only one that takes its volumes", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const { controller } = world;
    const takers = inTreePlugins().filter((plugin) => plugin.canSupport(spec));
    expect(takers.map((plugin) => plugin.pluginName)).toEqual([pluginName]);
    const inline = { ...spec.persistentVolume?.spec, name: "v" };
    expect(
      controller.canSupport({
        volume: inline as never,
        readOnly: false,
        inlineVolumeSpecForCsiMigration: false,
      }),
    ).toBe(true);
  });

  it("makes a volume once, of a rounded size, and deletes it once", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const pv = await world.provision();
    expect(pv).toMatchObject({
      metadata: {
        name: "pvc-1",
        annotations: {
          "kubernetes.io/createdby": `${pluginName.slice("kubernetes.io/".length)}-dynamic-provisioner`,
        },
      },
      spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" },
    });
    expect(["2Gi", "1500Mi"]).toContain(pv.spec?.capacity?.storage);
    expect(pv.spec?.accessModes).toContain("ReadWriteOnce");
    expect(await world.provision()).toEqual(pv);
    const { cloud, controller } = world;
    expect(cloud.disks.size).toBe(1);
    const zone = [...cloud.disks.values()][0]?.zone;
    const terms = pv.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
    expect(terms.flatMap((term) => term.matchExpressions?.flatMap((e) => e.values) ?? [])).toEqual(
      zone === "" ? [] : [zone, "us-east-1"],
    );
    if (!isDeletable(controller)) throw new Error(`${pluginName} deletes nothing`);
    const spec = await world.provisioned();
    await controller.newDeleter(spec).delete(signal);
    expect(cloud.disks.size).toBe(0);
    await controller.newDeleter(spec).delete(signal);
  });

  it("refuses a class's unknown parameter, or keeps it with the volume", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const made = world.provision({ parameters: { noSuchThing: "x" } });
    if (pluginName === "kubernetes.io/portworx-volume") {
      await made;
      expect([...world.cloud.disks.values()][0]?.tags).toMatchObject({ nosuchthing: "x" });
    } else await expect(made).rejects.toThrow(`invalid option "noSuchThing" for volume plugin ${pluginName}`);
  });

  it("says who has it, what is attached, and that it cannot be deleted meanwhile", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const { controller } = world;
    const spec = await world.provisioned();
    if (!isInTreeAttachable(controller)) return;
    const reported = await controller.newAttacher().attach(spec, "node-1", signal);
    const answers = await controller.newAttacher().volumesAreAttached([spec], "node-1", signal);
    expect(answers.get(spec)).toBe(true);
    if (!listsAttachments(controller)) throw new Error("what is attached cannot be found again");
    const listed = await controller.listAttachments(signal);
    if (reported === "") return expect(listed).toEqual([]);
    expect(listed).toEqual([
      { volumeName: controller.getVolumeName(spec), nodeName: "node-1", devicePath: reported },
    ]);
    const error = await controller
      .newAttacher()
      .attach(spec, "node-2", signal)
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(DanglingAttachError);
    expect((error as DanglingAttachError).currentNode).toBe("node-1");
    if (!isDeletable(controller)) throw new Error(`${pluginName} deletes nothing`);
    await expect(controller.newDeleter(spec).delete(signal)).rejects.toThrow(DeletedVolumeInUseError);
  });

  it("says which disk is missing", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const { controller, node, cloud } = world;
    const spec = await world.provisioned();
    cloud.disks.clear();
    const use = async () => {
      if (!isInTreeAttachable(controller) || !isAttachable(node)) {
        return await (await node.newMounter(spec, podOf("a"))).setUp({}, signal);
      }
      const reported = await controller.newAttacher().attach(spec, "node-1", signal);
      await node.newAttacher().waitForAttach(spec, reported, signal, podOf("a"));
    };
    await expect(use()).rejects.toThrow(/the provider has no such disk: correct/);
    expect(await world.host.listMounts("/kubelet")).toEqual([]);
  });

  it("grows, and its file system with it, where it can", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const { host, node, controller } = world;
    const spec = await world.provisioned();
    if (!isExpandable(controller)) return expect(pluginName).toBe("kubernetes.io/vsphere-volume");
    const grown = await controller.expandVolumeDevice(spec, BigInt(4.5 * gib), BigInt(2 * gib), signal);
    expect(Number(grown)).toBeGreaterThanOrEqual(4.5 * gib);
    if (!controller.requiresFSResize()) return expect(pluginName).toBe("kubernetes.io/azure-file");
    if (!isNodeExpandable(node)) throw new Error("the file system never grows");
    const { device, attacher } = await attached(world, spec);
    const globalPath = attacher?.getDeviceMountPath(spec) ?? "";
    await attacher?.mountDevice(spec, device, globalPath, signal);
    const mounter = await node.newMounter(spec, podOf("a"));
    await mounter.setUp({}, signal);
    const where = isDeviceMountable(node)
      ? { path: globalPath, phase: "staged" as const }
      : { path: mounter.getPath(), phase: "published" as const };
    const options = { spec, devicePath: device, deviceMountPath: globalPath, newSizeBytes: grown, ...where };
    expect(await node.nodeExpand(options, signal)).toBe(true);
    expect((await host.usage(mounter.getPath())).totalBytes).toBeGreaterThanOrEqual(4.5 * gib);
  });

  it("is mapped as a device, found again by it, and unmapped", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const { host, node, cloud } = world;
    if (!isBlockVolumePlugin(node)) {
      const made = world.provision({ claim: { volumeMode: "Block" } });
      return await expect(made).rejects.toThrow("does not support block volume provisioning");
    }
    // Two of one pod: each is found by where its link leads.
    const volumes = [];
    for (const pvName of ["pvc-1", "pvc-2"]) {
      const spec = await world.provisioned({ pvName, claim: { volumeMode: "Block" } });
      expect(spec.persistentVolume?.spec?.volumeMode).toBe("Block");
      // A device has no file system. The API server puts ext4 in place of what a source of Azure leaves out.
      const [fsType] = Object.values(spec.persistentVolume?.spec ?? {}).flatMap((source) =>
        typeof source === "object" && source !== null && "fsType" in source ? [source.fsType] : [],
      );
      expect(fsType).toBe(pluginName === "kubernetes.io/azure-disk" ? "" : undefined);
      const { device } = await attached(world, spec);
      // A device has no file system that could grow.
      const grown = { spec, devicePath: device, deviceMountPath: "", path: "", newSizeBytes: 1n };
      if (isNodeExpandable(node))
        expect(await node.nodeExpand({ ...grown, phase: "staged" }, signal)).toBe(true);
      const mapper = await node.newBlockVolumeMapper(spec, podOf("a"));
      const globalPath = mapper.getGlobalMapPath(spec);
      const { directory, name } = mapper.getPodDeviceMapPath();
      expect(globalPath.startsWith(`/kubelet/plugins/${pluginName}/volumeDevices/`)).toBe(true);
      expect(directory).toBe(`/kubelet/pods/a/volumeDevices/${pluginName.replace("/", "~")}`);
      expect(name).toBe(pvName);
      // As the volume manager does it before it binds anything: a link that leads nowhere yet.
      for (const parent of [globalPath, directory]) await host.makeDirectory(parent);
      await host.symlink(`${globalPath}/a`, `${directory}/${name}`);
      volumes.push({ spec, pvName, globalPath, entry: `${directory}/${name}`, device });
    }
    for (const { spec, pvName, entry } of volumes) {
      const found = await node.constructBlockVolumeSpec("a", pvName, entry);
      expect(node.getVolumeName(found)).toBe(node.getVolumeName(spec));
      expect(isBlockSpec(found)).toBe(true);
      await expect(node.constructBlockVolumeSpec("b", pvName, entry)).rejects.toThrow("no mapping");
    }
    for (const { spec, pvName, globalPath, entry, device } of volumes) {
      const unmapper = await node.newBlockVolumeUnmapper(pvName, "a");
      expect(unmapper.getPodDeviceMapPath().name).toBe(pvName);
      await host.removeFile(entry);
      for (let repeat = 0; repeat < 2; repeat++) await unmapper.tearDownDevice?.(globalPath, device, signal);
      const { controller } = world;
      if (isInTreeAttachable(controller))
        await controller.newDetacher().detach(controller.getVolumeName(spec), "node-1", signal);
    }
    expect([...cloud.disks.values()].flatMap(({ attachments }) => [...attachments])).toEqual([]);
  });

  it("limits how many a node has, by a resource of its own, where the provider does", async () => {
    const world = await InTreePluginWorld.of(pluginName);
    const spec = await world.provisioned();
    const { controller } = world;
    const unlimited = ["azure-file", "portworx-volume", "rbd"].map((name) => `kubernetes.io/${name}`);
    expect(hasAttachLimits(controller)).toBe(!unlimited.includes(pluginName));
    if (!hasAttachLimits(controller)) return;
    const key = `attachable-volumes-${pluginName.slice("kubernetes.io/".length)}`;
    expect(controller.volumeLimitKey(spec)).toBe(key);
    expect(controller.getVolumeLimits({ instanceType: "" })[key]).toBeGreaterThan(0);
  });
});

const forms: readonly {
  readonly form: string;
  place(): Promise<{ readonly host: Host; readonly dir: string; close(): Promise<void> }>;
}[] = [
  { form: "simulated", place: async () => ({ host: new SimulatedHost(), dir: "", close: async () => {} }) },
  {
    form: "unprivileged",
    async place() {
      const dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-in-tree-`));
      const close = () => rm(dir, { recursive: true, force: true });
      return { host: unprivilegedHost(), dir, close };
    },
  },
];

/** Two rounds of two pods on one volume; each call is made twice. */
async function usedByPods(world: InTreePluginWorld<Host>): Promise<void> {
  const gid = process.getgid?.() ?? 0;
  const { host, dir, node, controller, pluginName } = world;
  const spec = await world.provisioned();
  for (const round of ["0", "1"]) {
    const { device, attacher } = await attached(world, spec);
    const globalPath = attacher?.getDeviceMountPath(spec) ?? "";
    for (const uid of ["a", "b"]) {
      // Twice: what is there already is left alone.
      for (let repeat = 0; repeat < 2; repeat++) {
        await attacher?.mountDevice(spec, device, globalPath, signal);
        await (await node.newMounter(spec, podOf(uid))).setUp({ fsGroup: gid }, signal);
      }
      const path = (await node.newMounter(spec, podOf(uid))).getPath();
      await host.appendFileDurable(`${path}/data`, round + uid);
      const found = await node.constructVolumeSpec("pvc-1", path);
      if (!isDeviceMountable(node)) continue;
      expect(node.getVolumeName(found)).toBe(node.getVolumeName(spec));
      if (!listsGlobalMounts(node)) throw new Error("its global mounts are not found after a restart");
      const mounts = await node.listGlobalMounts();
      expect(mounts.map((mount) => [mount.deviceMountPath, node.getVolumeName(mount.spec)])).toEqual([
        [globalPath, node.getVolumeName(spec)],
      ]);
    }
    const paths = ["a", "b"].map(
      (uid) => `${dir}/kubelet/pods/${uid}/volumes/${pluginName.replace("/", "~")}/pvc-1`,
    );
    for (const [index, uid] of ["a", "b"].entries()) {
      for (let repeat = 0; repeat < 2; repeat++) {
        await (await node.newUnmounter("pvc-1", uid)).tearDown(signal);
        expect(await host.stat(paths[index] as string)).toBeUndefined();
      }
      if (uid === "a") {
        const data = await host.readFile(`${paths[1]}/data`);
        expect(data).toBe("0a0b1a1b".slice(0, round === "0" ? 4 : 8));
      }
    }
    if (isDeviceMountable(node)) {
      for (let repeat = 0; repeat < 2; repeat++)
        await node.newDeviceUnmounter().unmountDevice(globalPath, signal);
      expect(await host.stat(globalPath)).toBeUndefined();
    }
    if (isInTreeAttachable(controller)) {
      const name = controller.getVolumeName(spec);
      for (let repeat = 0; repeat < 2; repeat++)
        await controller.newDetacher().detach(name, "node-1", signal);
    }
    expect(await host.listMounts(`${dir}/kubelet`)).toEqual([]);
    expect([...world.cloud.disks.values()].flatMap(({ attachments }) => [...attachments])).toEqual([]);
    const records = `${dir}/kubelet/plugins/${pluginName}/volumes`;
    expect((await host.readDirectory(records)) ?? []).toEqual([]);
  }
}

describe.each(forms)("on the $form host", ({ place }) => {
  it.each(names)(
    "%s mounts for two pods, is found again on disk, keeps the data and leaves nothing",
    async (pluginName) => {
      const { host, dir, close } = await place();
      try {
        await usedByPods(await InTreePluginWorld.at(pluginName, { host, dir }));
      } finally {
        await close();
      }
    },
  );
});
